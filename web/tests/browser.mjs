// A browser for tests: Debian's Chromium, in a profile of its own, that asserts what no page may do.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

/** A folder of built files of the page, which are shown in place of those in the program: for work on the page without building the program. */
const FILES = process.env.NEARSIFT_PAGE_FILES;

const PATH = process.env.NEARSIFT_CHROMIUM ?? "/usr/bin/chromium";

/** Opens a browser that keeps nothing and asks nobody. */
export async function openBrowser() {
  const profile = mkdtempSync(join(tmpdir(), "nearsift-page-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: PATH,
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
    locale: "en-GB",
    viewport: { width: 1280, height: 900 },
  });
  context.setDefaultTimeout(8000);
  if (FILES) {
    for (const name of ["page.js", "page.css"]) {
      const contentType = name.endsWith("js") ? "text/javascript" : "text/css";
      await context.route(`**/page/${name}`, (route) => route.fulfill({ path: join(FILES, name), contentType }));
    }
  }
  return {
    context,
    close: async () => {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

/** A page whose misdeeds are listed: requests elsewhere, dialogs, errors of the console, scripts that a document brought. */
export async function openPage(context, origin) {
  const misdeeds = [];
  const page = await context.newPage();
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith("data:") && !url.startsWith("blob:")) misdeeds.push(`request: ${url}`);
  });
  page.on("dialog", (dialog) => {
    misdeeds.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    if (message.type() === "error" && !isExpected(page, message)) misdeeds.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => misdeeds.push(`error: ${error.message}`));
  page.on("popup", () => misdeeds.push("a window opened"));
  await page.addInitScript(() => {
    // Every payload calls this.
    window.__ran = [];
    window.xss = (what) => window.__ran.push(String(what));
  });
  const check = async () => {
    const ran = await page.evaluate(() => window.__ran);
    return [...misdeeds, ...ran.map((what) => `script: ${what}`)];
  };
  return { page, check, misdeeds };
}

/** A browser writes a line for every answer of 400 and more: tests that ask for such say so. */
function isExpected(page, message) {
  return page.expectsProblems === true && /status of (4|5)\d\d|ERR_CONNECTION/.test(message.text());
}
