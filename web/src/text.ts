// What strangers wrote, and numbers, as people read them.

import type { Id } from "./api";

/** A text whose control characters and those that turn the direction of writing are visible symbols. */
export function visible(text: string): string {
  return text.replace(
    // eslint-disable-next-line no-control-regex
    /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (c) => {
      const code = c.codePointAt(0) ?? 0;
      if (code < 0x20) return String.fromCodePoint(0x2400 + code);
      if (code === 0x7f) return "\u2421";
      return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
    },
  );
}

/** The longest name that is shown, in characters. */
const NAME = 200;

/** An id or a name on one line. */
export function line(value: Id): string {
  const characters = Array.from(String(value));
  const cut = characters.length > NAME ? `${characters.slice(0, NAME).join("")}…` : String(value);
  return visible(cut).replace(/[\n\t]/g, " ");
}

/** The language of numbers and dates. */
let locale = "en";

export function setLocale(tag: string): void {
  locale = tag;
}

export function grouped(number: number): string {
  return new Intl.NumberFormat(locale).format(number);
}

/** A score or share, rounded to so many digits. */
export function rounded(number: number, digits = 3): string {
  return new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(number);
}

export function percent(share: number, digits = 1): string {
  return new Intl.NumberFormat(locale, {
    style: "percent",
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(share);
}

export function bytes(number: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = number;
  let unit = 0;
  while (value >= 1000 && unit + 1 < units.length) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? grouped(value) : rounded(value, 1)} ${units[unit]}`;
}

export function time(written: string): string {
  const date = new Date(written);
  if (Number.isNaN(date.getTime())) return "";
  return new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }).format(date);
}

/** The time of day of seconds since 1970. */
export function clock(seconds: number): string {
  return new Intl.DateTimeFormat(locale, { timeStyle: "medium", hour12: false }).format(new Date(seconds * 1000));
}
