// Every flow of the page in a real browser, on the example corpus and on a hostile one.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openBrowser, openPage } from "./browser.mjs";
import { PAYLOADS } from "./payloads.mjs";
import { REPOSITORY, nearsift, serve, temporary, view, writeLines } from "./programs.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PORT = 20_000 + (process.pid % 20_000);

let browser;
const { folder, remove } = temporary();

before(async () => {
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  remove();
});

/** What axe finds wrong, by rule and place. */
async function axe(page) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() =>
    window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
  );
  return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`);
}

/** Waits until nothing is loaded any more: neither where there was nothing before, nor where older answers are shown until then. */
async function settle(page) {
  await page.waitForFunction(() => document.querySelector("main") && !document.querySelector(".spinner, [aria-busy=true]"));
}

/** Opens another view in a page that is open, and waits until it is drawn: a change of the hash alone is drawn some time after `goto`. */
async function visit(page, hash) {
  await page.evaluate(
    (hash) =>
      new Promise((done) => {
        // The page's own listener was there first, and draws before a timer runs.
        addEventListener("hashchange", () => setTimeout(done), { once: true });
        const before = location.hash;
        location.hash = hash;
        if (location.hash === before) done();
      }),
    hash,
  );
  await settle(page);
}

describe("a run", () => {
  let shown;
  let origin;
  const truth = join(folder, "truth.jsonl");

  before(async () => {
    nearsift("dedup", join(REPOSITORY, "examples/corpus.jsonl"), "--output", join(folder, "run"), "--quiet");
    shown = await view(join(folder, "run"), "--review", truth);
    origin = shown.origin;
    for (;;) {
      const run = await (await fetch(`${origin}/v1/run`)).json();
      if (run.texts.state === "ready") break;
      await new Promise((done) => setTimeout(done, 20));
    }
  });
  after(() => shown?.stop());

  const open = async (hash) => {
    const opened = await openPage(browser.context, origin);
    await opened.page.goto(`${origin}/${hash}`);
    await settle(opened.page);
    return { ...opened, end: async () => {
      assert.deepEqual(await opened.check(), []);
      await opened.page.close();
    } };
  };

  test("the first paint is there within a second", async () => {
    const { page, end } = await open("");
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
    assert.ok(paint < 1000, `${paint} ms`);
    await end();
  });

  test("groups: listed, sorted, opened, compared", async () => {
    const { page, end } = await open("#/groups");
    assert.equal(await page.locator(".rows > li").count(), 19);
    const first = page.locator(".rows > li").first();
    await page.getByLabel("Order").selectOption("nearness");
    await first.filter({ hasText: /metro-original|least score 0\.7/ }).waitFor();
    assert.match(page.url(), /order=nearness/);
    await page.getByLabel("Order").selectOption("size");
    await first.filter({ has: page.locator(".count", { hasText: /^8/ }) }).waitFor();
    assert.match(page.url(), /order=size/);
    await page.locator(".row").first().click();
    await page.locator(".member").first().waitFor();
    assert.equal(await page.locator(".member").count(), 8);
    assert.equal(await page.locator(".matrix tbody tr").count(), 8);
    await page.locator(".member.gone").first().getByRole("link", { name: /Compare with/ }).click();
    await page.locator(".verdict h2").waitFor();
    assert.equal(await page.locator(".verdict h2").innerText(), "These are near duplicates.");
    assert.ok((await page.locator(".side del").count()) > 0 && (await page.locator(".side ins").count()) > 0);
    await end();
  });

  test("keys: search, next, previous, help", async () => {
    const { page, end } = await open("#/groups");
    await page.locator(".row").first().waitFor();
    const list = await (await fetch(`${origin}/v1/run/clusters?order=size&len=50`)).json();
    const isOpen = (nth) => page.waitForURL((url) => url.hash.endsWith(`group=${list.clusters[nth].cluster}`));
    // No key is lost, however fast they come: nothing is waited for between them.
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await isOpen(1);
    await page.keyboard.press("k");
    await isOpen(0);
    // Not even where the page has no time at all to draw what the key before did.
    const press = (...keys) => page.evaluate((keys) => keys.forEach((key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }))), keys);
    await press("j", "j", "j", "k", "j");
    await isOpen(3);
    await page.locator(".row[aria-current]").filter({ hasText: String(list.clusters[3].representative) }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("harbour-h");
    await page.keyboard.press("Enter");
    await page.getByText("1 documents").waitFor();
    assert.match(await page.locator(".rows .row").first().innerText(), /harbour-heavy/);
    await page.locator("main").click({ position: { x: 2, y: 2 } });
    await page.keyboard.press("?");
    await page.getByRole("region", { name: "Keyboard" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("region", { name: "Keyboard" }).waitFor({ state: "detached" });
    await end();
  });

  test("another document to stay is chosen, and exported", async () => {
    const { page, end } = await open("#/groups?group=1");
    await page.getByRole("button", { name: "Keep this one instead" }).first().click();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: /Export 1/ }).click();
    const path = join(folder, "keep.jsonl");
    await (await download).saveAs(path);
    const chosen = JSON.parse(readFileSync(path, "utf8"));
    assert.equal(chosen.keep, "title-essay-b");
    assert.match(chosen.cluster, /^[0-9a-f]{32}$/);
    await end();
  });

  test("two documents by their ids, and one that is not there", async () => {
    const { page, end } = await open("#/compare");
    await page.getByLabel("Id of the first document").fill("metro-original");
    await page.getByLabel("Id of the second document").fill("metro-traditional");
    await page.getByRole("button", { name: "Compare" }).click();
    await page.locator(".verdict h2").waitFor();
    // Traditional characters count as equal, unless they are asked for.
    assert.equal(await page.locator(".side mark").count(), 0);
    await page.getByLabel(/Show what counts as equal/).check();
    assert.ok((await page.locator(".side mark").count()) > 0);
    await page.getByLabel("Id of the second document").fill("nobody");
    await page.getByRole("button", { name: "Compare" }).click();
    assert.match(await page.getByRole("alert").innerText(), /No document/);
    await end();
  });

  test("texts are searched by their words, and hits lead to their group", async () => {
    const { page, end } = await open("#/groups");
    await page.locator(".row").first().waitFor();
    await page.keyboard.press("/");
    // Traditional characters count as equal.
    await page.keyboard.type("換乘 地鐵");
    await page.keyboard.press("Enter");
    const texts = page.getByRole("region", { name: "In texts" });
    await texts.getByText(/Searched \d+ of \d+\.$/).waitFor();
    await page.getByText("No document of the run has this in its id.").waitFor();
    const hits = texts.locator(".row");
    assert.ok((await hits.count()) > 1);
    const marked = await hits.first().locator("mark").allInnerTexts();
    assert.ok(marked.some((text) => /地铁|地鐵|换乘|換乘/.test(text)), String(marked));
    assert.deepEqual(await axe(page), []);
    await texts.locator("a.row").first().focus();
    await page.keyboard.press("Enter");
    await page.locator(".member.wanted").waitFor();
    await page.getByLabel("Search ids and texts").fill("words that no text has");
    await page.keyboard.press("Enter");
    await texts.getByText("No text has all of these words.").waitFor();
    await end();
  });

  test("a search of texts that fails can be tried again, and goes on part by part", async () => {
    const { page } = await openPage(browser.context, origin);
    page.expectsProblems = true;
    let asked = 0;
    const hit = (record) => ({ id: `d${record}`, record, cluster: null, snippet: { pieces: [{ text: "词", is_hit: true }], cut_before: false, cut_behind: true } });
    await page.route(/search\/texts/, (route) => {
      asked += 1;
      const from = Number(new URL(route.request().url()).searchParams.get("from"));
      if (asked === 2) return route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify({ type: "urn:nearsift:problem:busy", detail: "busy" }) });
      const found = from === 0 ? [hit(1)] : from === 10 ? Array.from({ length: 49 }, (_, nth) => hit(11 + nth)) : [hit(99)];
      const next = from === 0 ? 10 : from === 10 ? 60 : null;
      return route.fulfill({ json: { found, searched: next ?? 100, records: 100, next, texts: { state: "ready" } } });
    });
    await page.goto(`${origin}/#/groups?q=x`);
    const texts = page.getByRole("region", { name: "In texts" });
    await texts.getByText(/Another search/).waitFor();
    assert.equal(await texts.locator(".row").count(), 1);
    await texts.getByRole("button", { name: "Try again" }).click();
    await texts.getByText("50 documents · Searched 60 of 100.").waitFor();
    await texts.getByRole("button", { name: "Search on" }).click();
    await texts.getByText("51 documents · Searched 100 of 100.").waitFor();
    await page.close();
  });

  test("moved passages are numbered on both sides, and lead to each other", async () => {
    const { page, end } = await open("#/compare?by=text");
    const one = "据新华社报导，沿海地区预计降雨将持续至周日晚上，请注意防范。";
    const other = "委员会将于明年春天发表最终报告，所有成员都可以在此之前对草案提出意见和建议。";
    await page.locator("textarea").nth(0).fill(`${one}${other}`);
    await page.locator("textarea").nth(1).fill(`${other}${one}`);
    await page.getByRole("button", { name: "Compare" }).click();
    await page.locator("del.moved").waitFor();
    assert.equal(await page.locator(".sides .moved").count(), 2);
    await page.getByRole("button", { name: "Passage 1 was moved: show it in the second text" }).press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("data-move")), "b1");
    assert.deepEqual(await axe(page), []);
    await end();
  });

  test("texts and files: pasted, dropped, too large, binary", async () => {
    const { page, end } = await open("#/compare?by=text");
    await page.locator("textarea").nth(0).fill("漢語：今天下午的阅读活动共有三十个家庭参加。");
    await page.locator("textarea").nth(1).fill("汉语: 今天下午的阅读活动共有三十个家庭参加");
    await page.getByRole("button", { name: "Compare" }).click();
    await page.getByRole("heading", { name: /the same text/ }).waitFor();
    const choose = (nth, name, buffer) =>
      page.locator("input[type=file]").nth(nth).setInputFiles({ name, mimeType: "", buffer });
    await choose(0, "blob.bin", Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, ...new Array(200).fill(0), ...new Array(2000).fill(7)]));
    assert.match(await page.getByRole("alert").innerText(), /binary file/);
    const large = join(folder, "large.txt");
    writeFileSync(large, Buffer.alloc(51 << 20, "a"));
    await page.locator("input[type=file]").first().setInputFiles(large);
    await page.getByText(/at most/).waitFor();
    // The same words in GBK.
    await choose(0, "gbk.txt", Buffer.from("bdf1ccecb1b1bea9b5c4ccecc6f8c7e7c0cabdf1ccecb1b1bea9b5c4ccecc6f8c7e7c0ca", "hex"));
    await page.getByText(/gbk\.txt/).waitFor();
    await page.locator("textarea").first().fill("今天北京的天气晴朗今天北京的天气晴朗");
    await page.getByRole("button", { name: "Compare" }).click();
    await page.locator(".side h3", { hasText: "gbk.txt" }).waitFor();
    assert.match(await page.locator(".verdict h2").innerText(), /the same text/);
    await end();
  });

  test("the threshold moves, and the counts with it", async () => {
    const { page, end } = await open("#/threshold");
    const counts = async () => (await page.locator(".live strong").allInnerTexts()).map(Number);
    assert.deepEqual(await counts(), [71, 40, 19]);
    const slider = page.getByRole("slider");
    await slider.focus();
    for (let n = 0; n < 3; n += 1) await page.keyboard.press("PageUp");
    await page.keyboard.press("End");
    const most = await counts();
    assert.ok(most[0] < 71 && most[1] < 40 && most[2] < 19, String(most));
    await page.getByRole("button", { name: /Back to the run/ }).click();
    assert.deepEqual(await counts(), [71, 40, 19]);
    await end();
  });

  test("a threshold leads to the review of its pairs, and is there when one comes back", async () => {
    const { page, end } = await open("#/threshold");
    await page.getByRole("spinbutton", { name: "Threshold" }).fill("0.8");
    await page.waitForURL(/at=0\.8$/);
    const sample = await (await fetch(`${origin}/v1/run/borderline?threshold=0.8&len=20`)).json();
    const scores = page.locator(".pairs tbody .number");
    await scores.filter({ hasText: sample[0].score.toFixed(3) }).first().waitFor();
    assert.deepEqual((await scores.allInnerTexts()).map(Number), sample.map((pair) => Number(pair.score.toFixed(3))));
    await page.getByRole("link", { name: "Review pairs at this threshold" }).click();
    await page.getByText("Pairs at the threshold 0.8").waitFor();
    await page.locator(".judge-bar").waitFor();
    assert.deepEqual(await axe(page), []);
    await page.goBack();
    await page.getByRole("slider").waitFor();
    assert.equal(await page.getByRole("slider").inputValue(), "0.8");
    await end();
  });

  test("two reviewers at once lose nothing, and the last one counts", async () => {
    const one = await open("#/review");
    const two = await open("#/review");
    await one.page.getByLabel("Your name").fill("li");
    for (const [page, key] of [[one.page, "1"], [two.page, "2"], [one.page, "3"], [one.page, "1"]]) {
      await page.locator(".side").first().waitFor();
      await page.locator("h1").click();
      const place = await page.locator(".judge-bar > span").first().innerText();
      const answered = page.waitForResponse((response) => response.url().endsWith("/v1/run/review") && response.request().method() === "POST");
      await page.keyboard.press(key);
      assert.equal((await answered).status(), 200);
      // The next key is for the next pair.
      await page.waitForFunction((before) => document.querySelector(".judge-bar > span")?.innerText !== before, place);
    }
    const lines = readFileSync(truth, "utf8").trim().split("\n").map((text) => JSON.parse(text));
    assert.deepEqual(lines.map((own) => own.label), ["POS", "NEG", "GREY", "POS"]);
    assert.equal(lines[0].who, "li");
    assert.deepEqual([lines[0].a, lines[0].b], [lines[1].a, lines[1].b]);
    await one.page.getByText("1 same, 1 different, 1 unsure").waitFor();
    // Keys that come faster than the page is drawn go on pair by pair.
    const place = () => one.page.locator(".judge-bar > span").first().innerText();
    const before = Number((await place()).match(/\d+/)[0]);
    await one.page.evaluate(() => ["j", "j", "k", "j"].forEach((key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }))));
    assert.equal(Number((await place()).match(/\d+/)[0]), before + 2);
    await one.end();
    await two.end();
    const figures = JSON.parse(nearsift("eval", join(REPOSITORY, "examples/corpus.jsonl"), "--truth", truth, "--json").split("\n")[0]);
    assert.ok(figures, "the judgements are a truth");
  });

  test("axe finds nothing, in both themes, languages and widths", async () => {
    // The second pass takes four of them, which have every part of the page: axe needs seconds for each.
    const views = ["#/groups", "#/groups?group=11", "#/compare?a=%22metro-original%22&b=%22metro-heavy%22", "#/compare?by=text", "#/threshold", "#/review"];
    const { page, end } = await open("");
    for (const [language, theme, width] of [["en", "light", 1280], ["zh", "dark", 390]]) {
      await page.setViewportSize({ width, height: 844 });
      await page.evaluate(([language, theme]) => {
        localStorage.setItem("nearsift-language", language);
        localStorage.setItem("nearsift-theme", theme);
      }, [language, theme]);
      for (const hash of width === 390 ? views.slice(1, 5) : views) {
        await page.goto(`${origin}/${hash}`);
        await page.reload();
        await settle(page);
        assert.deepEqual(await axe(page), [], `${hash} ${language} ${theme}`);
      }
    }
    assert.equal(await page.evaluate(() => document.documentElement.lang), "zh-CN");
    await page.evaluate(() => localStorage.clear());
    await end();
  });

  test("the graph of a small group leads to its documents and pairs, by keys as well", async () => {
    const { page, end } = await open("#/groups?group=11");
    const group = await (await fetch(`${origin}/v1/run/clusters/11?len=60`)).json();
    const nodes = page.locator(".graph a.node");
    assert.equal(await nodes.count(), group.members.length);
    assert.equal(await page.locator(".graph a.node rect").count(), group.members.filter((one) => one.removed).length);
    assert.equal(await page.locator(".graph .ring").count(), 1 + 1, "the representative, and the legend");
    const same = group.members.filter((one) => one.removed?.reason.startsWith("exact")).length;
    const near = group.pairs.filter((pair) => pair.score < 1).length;
    assert.ok((await page.locator(".graph a.edge").count()) >= near && near > 0);
    assert.equal(await page.locator(".graph a.edge.same").count(), same);
    // The policy of the page takes no styles in attributes.
    assert.equal(await page.locator(".graph [style]").count(), 0);
    // One stop of the tabulator; the arrows lead on from there.
    assert.equal(await page.locator(".graph a[tabindex='0']").count(), 1);
    await nodes.first().focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    const third = group.members[2];
    assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), new RegExp(`^3 · ${third.id}: `));
    assert.match(await page.locator(".graph-said").innerText(), new RegExp(String(third.id)));
    await page.keyboard.press("Enter");
    await page.locator(".member.wanted:focus").waitFor();
    assert.match(await page.locator(".member.wanted").innerText(), new RegExp(`^3\\s+${third.id}`));
    await nodes.nth(2).focus();
    await page.keyboard.press("ArrowDown");
    const name = await page.evaluate(() => document.activeElement.getAttribute("aria-label"));
    assert.match(name, new RegExp(`${third.id}.*(: score 0\\.\\d{3}|: the same text)$`));
    await page.keyboard.press("Enter");
    await page.locator(".verdict h2").waitFor();
    assert.match(decodeURIComponent(page.url()), new RegExp(`"${third.id}"`));
    await end();
  });

  test("nothing is wider than the window, from 360 to 2560 px", async () => {
    const { page, end } = await open("");
    for (const width of [360, 768, 2560]) {
      await page.setViewportSize({ width, height: 800 });
      for (const hash of ["#/groups", "#/groups?group=11", "#/compare?a=%22metro-original%22&b=%22metro-heavy%22", "#/compare?by=text", "#/threshold", "#/review"]) {
        await visit(page, hash);
        const own = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(own <= width, `${hash}: ${own} of ${width}`);
      }
    }
    await end();
  });
});

describe("a run of chains", () => {
  let shown;
  let origin;

  before(async () => {
    // Each text goes on where the one before is at three of its ten sentences: near the next one, and not near the one behind that.
    const words = "river city council water bridge school market winter report budget train museum garden harbour storm farm teacher doctor island valley".split(" ");
    let state = 7;
    const word = () => words[(state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) % words.length] + (state % 97);
    const sentence = () => `${Array.from({ length: 12 }, word).join(" ")}.`;
    const documents = [["short", 5], ["long", 18]].flatMap(([name, count]) => {
      const sentences = Array.from({ length: 10 + 3 * count }, sentence);
      return Array.from({ length: count }, (_, nth) => ({ id: `${name}-${nth + 1}`, text: sentences.slice(3 * nth, 3 * nth + 10).join(" ") }));
    });
    // In an order that says nothing of the chain.
    documents.sort((a, b) => (a.text < b.text ? -1 : 1));
    writeLines(join(folder, "chains.jsonl"), documents);
    nearsift("dedup", join(folder, "chains.jsonl"), "--output", join(folder, "chains"), "--cluster", "components", "--quiet");
    shown = await view(join(folder, "chains"));
    origin = shown.origin;
  });
  after(() => shown?.stop());

  /** Where the documents of a group are, by the number in their id. */
  const places = async (page) => {
    const nodes = await page.locator(".graph a.node").evaluateAll((all) =>
      all.map((node) => {
        const box = node.querySelector(".shape").getBBox();
        return { number: Number(node.getAttribute("aria-label").match(/-(\d+): /)[1]), x: box.x + box.width / 2, y: box.y + box.height / 2 };
      }),
    );
    return nodes.sort((a, b) => a.number - b.number);
  };

  test("a chain is drawn as a chain, whatever the order of its documents is", async () => {
    const { page, check } = await openPage(browser.context, origin);
    await page.goto(`${origin}/`);
    await settle(page);
    const { clusters } = await (await fetch(`${origin}/v1/run/clusters?order=size`)).json();
    assert.deepEqual(clusters.map((one) => one.size), [18, 5]);
    for (const { cluster, size } of clusters) {
      await visit(page, `#/groups?group=${cluster}`);
      const names = await page.locator(".graph a.edge").evaluateAll((all) => all.map((edge) => edge.getAttribute("aria-label")));
      const steps = names.map((name) => name.match(/-(\d+) and .*-(\d+): score 0\.\d{3}$/).slice(1).map(Number)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)]);
      assert.deepEqual(steps.sort(([a], [b]) => a - b), Array.from({ length: size - 1 }, (_, nth) => [nth + 1, nth + 2]));
      // From one end to the other, each is farther on than the one before.
      const nodes = await places(page);
      const forth = Math.sign(nodes.at(-1).x - nodes[0].x);
      for (const [nth, node] of nodes.entries()) {
        if (nth > 0) assert.ok((node.x - nodes[nth - 1].x) * forth > 0, `${size}: ${JSON.stringify(nodes)}`);
      }
      // A matrix of a small group, a table of a larger one.
      assert.deepEqual([await page.locator(".matrix").count(), await page.locator(".group .pairs").count()], size > 12 ? [0, 1] : [1, 0]);
    }
    assert.deepEqual(await check(), []);
    await page.close();
  });

  test("the graph passes axe in both themes and languages, and is no wider than a small window", async () => {
    const { page, check } = await openPage(browser.context, origin);
    const { clusters } = await (await fetch(`${origin}/v1/run/clusters?order=size`)).json();
    await page.goto(`${origin}/`);
    for (const [nth, language, theme] of [[0, "en", "light"], [0, "zh", "dark"], [1, "en", "dark"], [1, "zh", "light"]]) {
      await page.setViewportSize({ width: 360, height: 800 });
      await page.evaluate(([language, theme]) => {
        localStorage.setItem("nearsift-language", language);
        localStorage.setItem("nearsift-theme", theme);
      }, [language, theme]);
      await page.goto(`${origin}/#/groups?group=${clusters[nth].cluster}`);
      await page.reload();
      await settle(page);
      assert.deepEqual(await axe(page), [], `${nth} ${language} ${theme}`);
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360);
      // The small one is whole, without scrolling; numbers are at least 9 px high in both.
      const drawn = await page.locator(".graph svg").first().evaluate((svg) => [svg.getBoundingClientRect().width, svg.parentElement.clientWidth, svg.getScreenCTM().a * 11]);
      if (nth === 1) assert.ok(drawn[0] < drawn[1] + 1, String(drawn));
      assert.ok(drawn[2] >= 9, String(drawn));
    }
    await page.evaluate(() => localStorage.clear());
    assert.deepEqual(await check(), []);
    await page.close();
  });
});

describe("a hostile run", () => {
  let shown;
  let origin;
  const run = join(folder, "hostile-run");

  before(async () => {
    const input = join(folder, "hostile");
    mkdirSync(input);
    const names = PAYLOADS.filter((payload) => !/[/\0]/.test(payload) && Buffer.byteLength(payload) < 200).slice(0, 12);
    assert.ok(PAYLOADS.length >= 100 && names.length === 12);
    const documents = PAYLOADS.flatMap((payload, nth) => {
      const text = `${payload} 第${nth}条公告：本周${nth}日起${nth * 7}号楼停水检修，请各位住户提前储水备用。${payload}`;
      return ["a", "b"].map((which) => ({ id: `${payload} ${which}`, text: `${text}${which === "b" ? " 特此通知" : ""}`, site: payload }));
    });
    for (const [nth, payload] of names.entries()) {
      const own = documents.filter((_, at) => at % names.length === nth);
      writeLines(join(input, `${payload}.jsonl`), own);
    }
    nearsift("dedup", input, "--output", run, "--quiet", "--source-field", "site");
    shown = await view(run, "--review", join(folder, "hostile-truth.jsonl"));
    origin = shown.origin;
  });
  after(() => shown?.stop());

  test("no payload runs, asks elsewhere or opens anything, in any view", async () => {
    const { page, check } = await openPage(browser.context, origin);
    let seen = 0;
    await page.goto(`${origin}/`);
    for (let from = 0; from < 200; from += 50) {
      await visit(page, `#/groups?from=${from}`);
      seen += await page.locator(".rows > li").count();
    }
    assert.ok(seen >= 20, `${seen} groups`);
    const list = await (await fetch(`${origin}/v1/run/clusters?len=200`)).json();
    for (const group of list.clusters.slice(0, 24)) {
      await visit(page, `#/groups?group=${group.cluster}`);
      await page.locator(".member").first().waitFor();
    }
    const pairs = await (await fetch(`${origin}/v1/run/borderline?len=200`)).json();
    for (const pair of pairs.slice(0, 24)) {
      const query = new URLSearchParams({ a: JSON.stringify(pair.a), b: JSON.stringify(pair.b) });
      await visit(page, `#/compare?${query}`);
      await page.locator(".verdict h2").waitFor();
    }
    await visit(page, "#/groups");
    await page.locator("details > summary").click();
    const sources = await page.getByLabel("Source").locator("option").count();
    assert.ok(sources > 10, `${sources} sources`);
    for (let nth = 1; nth < sources; nth += 6) {
      await page.getByLabel("Source").selectOption({ index: nth });
      await settle(page);
    }
    for (const payload of PAYLOADS.filter((_, nth) => nth % 9 === 0)) {
      await visit(page, `#/groups?${new URLSearchParams({ q: payload.slice(0, 60) })}`);
      // The address itself is a place for payloads.
      await page.goto(`${origin}/#/${encodeURIComponent(payload)}?group=${encodeURIComponent(payload)}`);
      await page.goto(`${origin}/#/compare?a=${encodeURIComponent(JSON.stringify(payload))}&b=${encodeURIComponent(payload)}`);
    }
    for (const hash of ["#/threshold", "#/review"]) await visit(page, hash);
    assert.deepEqual((await check()).filter((what) => !/status of 404|status of 422/.test(what)), []);
    await page.close();
  });

  test("payloads that are pasted and files that are named so do no harm", async () => {
    const { page, check } = await openPage(browser.context, origin);
    await page.goto(`${origin}/#/compare?by=text`);
    await page.locator("textarea").nth(1).fill(PAYLOADS.join("\n"));
    for (const payload of PAYLOADS.filter((_, nth) => nth % 12 === 0)) {
      await page.locator("input[type=file]").first().setInputFiles({ name: payload.replaceAll("\0", ""), mimeType: "text/html", buffer: Buffer.from(`<html><body><p>${payload.replaceAll("\0", "")} 今天下午的阅读活动</p>`) });
      await page.getByRole("button", { name: "Compare" }).click();
      await page.locator(".verdict h2").waitFor();
      await page.getByRole("button", { name: "Remove the file" }).click();
    }
    assert.deepEqual(await check(), []);
    await page.close();
  });

  test("report.html does no harm", async () => {
    const { page, check } = await openPage(browser.context, "file://");
    await page.goto(`file://${join(run, "report.html")}`);
    await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
    await page.waitForTimeout(100);
    assert.deepEqual(await check(), []);
    assert.deepEqual(await axe(page), []);
    await page.close();
  });
});

describe("a service", () => {
  let shown;
  let origin;
  const data = join(folder, "data");

  before(async () => {
    shown = await serve(data, PORT);
    origin = shown.origin;
    const lines = readFileSync(join(REPOSITORY, "examples/corpus.jsonl"), "utf8").trim().split("\n");
    const documents = lines.map((text) => JSON.parse(text)).map(({ id, text }) => ({ id: String(id), text }));
    documents.push(...PAYLOADS.map((payload, nth) => ({ id: `${nth}: ${payload.replace(/[\0-\x1f\u2028]/g, "")}`, text: `${payload} 第${nth}号：${payload}`, source: payload.slice(0, 200) })));
    await fetch(`${origin}/v1/documents`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ documents }) });
  });
  after(() => shown?.stop());

  const text = () => JSON.parse(readFileSync(join(REPOSITORY, "examples/corpus.jsonl"), "utf8").split("\n")[37]).text;

  test("compare, check and operate", async () => {
    const { page, check } = await openPage(browser.context, origin);
    await page.goto(`${origin}/`);
    await page.locator("textarea").nth(0).fill(text());
    await page.locator("textarea").nth(1).fill(`${text().slice(0, 200)}，另有补充。${text().slice(200)}`);
    await page.getByRole("button", { name: "Compare" }).click();
    await page.locator(".verdict h2").waitFor();
    assert.equal(await page.locator(".verdict h2").innerText(), "These are near duplicates.");
    assert.ok((await page.locator(".side ins").count()) > 0);
    assert.deepEqual(await axe(page), []);
    await page.goto(`${origin}/#/check`);
    await page.locator("textarea").fill(text());
    await page.getByRole("button", { name: "Check" }).click();
    await page.getByRole("heading", { name: /A duplicate/ }).waitFor();
    assert.match(await page.locator(".rows").innerText(), /metro/);
    assert.ok((await page.locator(".weights li").count()) > 10);
    assert.deepEqual(await axe(page), []);
    for (const payload of PAYLOADS.filter((_, nth) => nth % 20 === 0)) {
      await page.locator("textarea").fill(`${payload} ${payload}`);
      await Promise.all([page.waitForResponse(/features/), page.getByRole("button", { name: "Check" }).click()]);
    }
    await page.goto(`${origin}/#/operate`);
    await page.getByText("Ready", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Take a snapshot" }).click();
    await page.getByText(/^Taken: /).waitFor();
    await page.locator(".plain-list li").waitFor();
    await page.getByText(/Requests per second: \d/).waitFor();
    const slow = page.getByRole("group", { name: "Slowest requests" });
    await slow.getByText("POST /v1/documents").waitFor();
    assert.match(await slow.locator("tr", { hasText: "POST /v1/documents" }).first().innerText(), /200.*B.*default/s);
    assert.deepEqual(await axe(page), []);
    for (const hash of ["#/compare", "#/check", "#/operate"]) {
      await page.setViewportSize({ width: 360, height: 800 });
      await visit(page, hash);
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360, hash);
    }
    assert.deepEqual(await check(), []);
    await page.close();
  });

  test("a service that restarts under the page is said to be away, and found again", async () => {
    const { page } = await openPage(browser.context, origin);
    page.expectsProblems = true;
    await page.goto(`${origin}/#/operate`);
    await page.getByText("Ready", { exact: true }).waitFor();
    await shown.stop();
    await page.getByText("No answer", { exact: false }).waitFor();
    assert.match(await page.getByRole("alert").innerText(), /does not answer/);
    shown = await serve(data, PORT);
    await page.getByText("Ready", { exact: true }).waitFor();
    await page.close();
  });

  test("a key is asked for once, and again when it is withdrawn", async () => {
    const made = nearsift("serve", "--new-key", "read").split("\n").filter((row) => row && !row.startsWith("#"));
    const [key, line] = made;
    const keys = join(folder, "keys.txt");
    writeFileSync(keys, `${line}\n`);
    const port = PORT + 1;
    let locked = await serve(join(folder, "locked"), port, "--keys-file", keys);
    const { page, misdeeds } = await openPage(browser.context, locked.origin);
    page.expectsProblems = true;
    await page.goto(`${locked.origin}/#/operate`);
    await page.getByLabel("Key", { exact: true }).fill("nsk_wrong");
    await page.getByRole("button", { name: "Use the key" }).click();
    await page.getByText(/does not accept this key/).waitFor();
    await page.getByLabel("Key", { exact: true }).fill(key);
    await page.getByRole("button", { name: "Use the key" }).click();
    await page.getByText("Ready", { exact: true }).waitFor();
    await page.getByText(/need a key of scope admin/).waitFor();
    assert.equal(await page.evaluate(() => JSON.stringify([localStorage, sessionStorage, document.cookie]).includes("nsk_")), false);
    // Another key in the file: the old one is withdrawn.
    const other = nearsift("serve", "--new-key", "read").split("\n").filter((row) => row && !row.startsWith("#"));
    writeFileSync(keys, `${other[1]}\n`);
    await locked.stop();
    locked = await serve(join(folder, "locked"), port, "--keys-file", keys);
    await page.getByLabel("Key", { exact: true }).waitFor();
    assert.deepEqual(misdeeds.filter((what) => !what.startsWith("console")), []);
    await page.close();
    await locked.stop();
  });
});
