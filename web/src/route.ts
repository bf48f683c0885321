// Where the page is: the part of its address behind the hash sign, so that every view can be bookmarked and gone back to.

import { useLayoutEffect, useRef, useState } from "preact/hooks";

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

/** Goes to the address that the page has now, with other values of some parameters: counted from the address, not from what is drawn. */
export function change(view: string, changed: Record<string, string | number | undefined>): void {
  go(view, { ...parse(location.hash).parameters, ...changed });
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useLayoutEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    // The address may have changed since the first drawing.
    changed();
    return () => removeEventListener("hashchange", changed);
  }, []);
  return parse(hash);
}

/**
 * Calls a function for a key that is pressed outside of fields. The functions are always those of the latest drawing: an effect after the
 * paint would leave a time in which a key calls those of the drawing before.
 */
export function useKeys(keys: Record<string, () => void>): void {
  const latest = useRef(keys);
  latest.current = keys;
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target instanceof Element ? event.target : null;
      const isField = target?.closest("input, textarea, select, [contenteditable]");
      if (isField || event.ctrlKey || event.metaKey || event.altKey) return;
      const action = latest.current[event.key];
      if (action) {
        event.preventDefault();
        action();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}
