// Pictures of every view, in both languages and themes, at 390 and 1280 px.
// node tests/shots.mjs FOLDER [ONLY]                               of the example corpus
// node tests/shots.mjs FOLDER ONLY RUN_ADDRESS SERVICE_ADDRESS     of servers that run; - for none, ONLY may be all

import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openBrowser } from "./browser.mjs";
import { REPOSITORY, nearsift, serve, temporary, view } from "./programs.mjs";

const [folder, only = "all", ...addresses] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const own = addresses.length === 0 ? await start() : null;
const [run, service] = own?.addresses ?? addresses;

/** A run over the example corpus that is shown, and a service that has the corpus. */
async function start() {
  const corpus = join(REPOSITORY, "examples/corpus.jsonl");
  const { folder, remove } = temporary();
  nearsift("dedup", corpus, "--output", join(folder, "run"), "--quiet");
  const shown = await view(join(folder, "run"), "--review", join(folder, "truth.jsonl"));
  const served = await serve(join(folder, "service"), 20_000 + (process.pid % 20_000));
  const documents = readFileSync(corpus, "utf8").trim().split("\n").map((row) => JSON.parse(row)).map(({ id, text }) => ({ id, text }));
  await fetch(`${served.origin}/v1/documents`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ documents }) });
  const end = async () => {
    await Promise.all([shown.stop(), served.stop()]);
    remove();
  };
  return { addresses: [shown.origin, served.origin], end };
}
const pair = `a=${encodeURIComponent('"metro-original"')}&b=${encodeURIComponent('"metro-heavy"')}`;
const VIEWS = [
  ["groups", run, "#/groups?group=11"],
  ["graph", run, "#/groups?group=11"],
  ["list", run, "#/groups"],
  ["search", run, "#/groups?q=%E5%9C%B0%E9%93%81"],
  ["compare", run, `#/compare?${pair}`],
  ["compare-text", run, "#/compare?by=text"],
  ["moved", run, "#/compare?by=text"],
  ["threshold", run, "#/threshold"],
  ["review", run, "#/review"],
  ["service-compare", service, "#/compare"],
  ["check", service, "#/check"],
  ["operate", service, "#/operate"],
].filter(([name, origin]) => origin !== "-" && (only === "all" || only.split(",").includes(name)));

const { context, close } = await openBrowser();
const page = await context.newPage();
for (const language of ["en", "zh"]) {
  for (const theme of ["light", "dark"]) {
    for (const width of [1280, 390]) {
      for (const [name, origin, hash] of VIEWS) {
        await page.setViewportSize({ width, height: width === 390 ? 844 : 900 });
        await page.goto(`${origin}/`);
        await page.evaluate(
          ([language, theme]) => {
            localStorage.setItem("nearsift-language", language);
            localStorage.setItem("nearsift-theme", theme);
          },
          [language, theme],
        );
        await page.goto(`${origin}/${hash}`);
        await page.reload();
        await page.waitForTimeout(400);
        // Beside the list a group scrolls of its own, which a picture of the full page undoes.
        if (name === "graph") await page.locator(".graph svg").first().scrollIntoViewIfNeeded();
        if (name === "check") {
          const text = (await (await fetch(`${run}/v1/run/clusters?len=1`)).json()).clusters[0].beginning;
          await page.fill("textarea", text);
          await page.click("button[type=submit]");
          await page.waitForTimeout(500);
        }
        if (name === "service-compare" || name === "compare-text") {
          const areas = page.locator("textarea");
          await areas.nth(0).fill("漢語：今天下午，市图书馆举办了一场面向儿童的绘本阅读活动，共有三十个家庭参加。");
          await areas.nth(1).fill("汉语：今天下午，市图书馆举办了一场儿童绘本阅读活动，共有四十个家庭参加！");
          await page.click("button[type=submit]");
          await page.waitForTimeout(500);
        }
        if (name === "moved") {
          const one = "据新华社报导，沿海地区预计降雨将持续至周日晚上，请注意防范。";
          const other = "委员会将于明年春天发表最终报告，所有成员都可以在此之前对草案提出意见和建议。";
          await page.locator("textarea").nth(0).fill(`${one}${other}本报讯。`);
          await page.locator("textarea").nth(1).fill(`${other}${one}`);
          await page.click("button[type=submit]");
          await page.waitForTimeout(500);
        }
        if (name === "operate") await page.waitForTimeout(width === 1280 && theme === "light" ? 7000 : 2500);
        await page.screenshot({ path: join(folder, `${name}-${language}-${theme}-${width}.png`), fullPage: name !== "graph" });
      }
    }
  }
}
await close();
await own?.end();
