// Pictures of every view, in both languages and themes, at 390 and 1280 px.
// node tests/shots.mjs RUN_ADDRESS SERVICE_ADDRESS FOLDER [ONLY]

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openBrowser } from "./browser.mjs";

const [run, service, folder, only] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const pair = `a=${encodeURIComponent('"metro-original"')}&b=${encodeURIComponent('"metro-heavy"')}`;
const VIEWS = [
  ["groups", run, "#/groups?group=11"],
  ["list", run, "#/groups"],
  ["compare", run, `#/compare?${pair}`],
  ["compare-text", run, "#/compare?by=text"],
  ["threshold", run, "#/threshold"],
  ["review", run, "#/review"],
  ["service-compare", service, "#/compare"],
  ["check", service, "#/check"],
  ["operate", service, "#/operate"],
].filter(([name, origin]) => origin !== "-" && (!only || only.split(",").includes(name)));

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
        if (name === "operate") await page.waitForTimeout(width === 1280 && theme === "light" ? 7000 : 2500);
        await page.screenshot({ path: join(folder, `${name}-${language}-${theme}-${width}.png`), fullPage: true });
      }
    }
  }
}
await close();
