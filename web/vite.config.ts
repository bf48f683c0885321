import { defineConfig } from "vite";

// Names without hashes and no source maps: the server's table of files has three names, and equal sources give equal bytes.
export default defineConfig({
  base: "/page/",
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    outDir: process.env.NEARSIFT_PAGE_OUT ?? "../crates/nearsift-server/src/page/dist",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: false,
    target: "es2022",
    rollupOptions: {
      output: {
        entryFileNames: "page.js",
        assetFileNames: "page[extname]",
        manualChunks: undefined,
        inlineDynamicImports: true,
      },
    },
  },
});
