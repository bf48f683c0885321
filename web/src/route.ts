// Where the page is: the part of its address behind the hash sign, so that every view can be bookmarked and gone back to.

import { useEffect, useState } from "preact/hooks";

export type Route = { view: string; parameters: Record<string, string> };

export function parse(hash: string): Route {
  const [view = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parameters: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(query)) parameters[name] = value;
  return { view, parameters };
}

export function link(view: string, parameters: Record<string, string | number | undefined> = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== "") query.set(name, String(value));
  }
  const written = query.toString();
  return `#/${view}${written === "" ? "" : `?${written}`}`;
}

export function go(view: string, parameters: Record<string, string | number | undefined> = {}): void {
  location.hash = link(view, parameters);
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return parse(hash);
}

/** Calls a function for a key that is pressed outside of fields. */
export function useKeys(keys: Record<string, () => void>): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement | null;
      const isField = target?.closest("input, textarea, select, [contenteditable]");
      if (isField || event.ctrlKey || event.metaKey || event.altKey) return;
      const action = keys[event.key];
      if (action) {
        event.preventDefault();
        action();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
}
