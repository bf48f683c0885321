// The collections of a service, for a choice among them.

import { useEffect, useState } from "preact/hooks";
import { ask } from "./api";
import { Field } from "./parts";
import { useWords } from "./words";

export type Collection = {
  name: string;
  kind: string;
  recipe: string;
  documents: number;
  fresh: number;
  segments: number;
  disk_bytes: number;
  log_bytes: number;
  memory_bytes: number;
  failed?: string;
};

type Listed = { collections: (Collection | { name: string; unavailable: string })[] };

export function useCollections(): Collection[] {
  const [collections, setCollections] = useState<Collection[]>([]);
  useEffect(() => {
    ask<Listed>("/v1/collections").then(
      (listed) => setCollections(listed.collections.filter((one): one is Collection => "documents" in one)),
      () => {},
    );
  }, []);
  return collections;
}

/** The path of a route of a collection. */
export function routeOf(collection: string, route: string): string {
  return collection === "default" ? `/v1/${route}` : `/v1/collections/${encodeURIComponent(collection)}/${route}`;
}

export function CollectionField({
  collections,
  name,
  onName,
}: {
  collections: Collection[];
  name: string;
  onName: (name: string) => void;
}) {
  const { t } = useWords();
  if (collections.length < 2) return null;
  return (
    <Field label={t("collection")}>
      <select value={name} onChange={(event) => onName(event.currentTarget.value)}>
        {collections.map((one) => (
          <option key={one.name} value={one.name}>
            {one.name}
          </option>
        ))}
      </select>
    </Field>
  );
}
