// The language of the page, for all its parts.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { type Key, type Language, message } from "./messages";

export type Words = {
  language: Language;
  t: (key: Key, places?: Record<string, string | number>) => string;
};

export function wordsOf(language: Language): Words {
  return {
    language,
    t: (key, places) => {
      const written: Record<string, string> = {};
      for (const [name, value] of Object.entries(places ?? {})) written[name] = String(value);
      return message(language, key, written);
    },
  };
}

export const WordsContext = createContext<Words>(wordsOf("en"));

export function useWords(): Words {
  return useContext(WordsContext);
}
