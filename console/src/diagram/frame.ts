// Draws Mermaid diagrams, in a frame without an origin: it is given text and gives back a picture, and reaches neither the page, nor
// what the page keeps, nor any network.

import mermaid from "mermaid";
import type { Answered, Asked } from "./protocol";

let last = Promise.resolve();

addEventListener("message", ({ data, source }: MessageEvent<Asked>) => {
  if (source !== parent) return;
  // Mermaid draws one at a time.
  last = last.then(async () => parent.postMessage(await answer(data), "*"));
});
parent.postMessage("ready", "*");

const answer = async ({ number, source, dark }: Asked): Promise<Answered> => {
  try {
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      theme: dark ? "dark" : "default",
      // Words as SVG: HTML inside of a picture is not shown by all browsers.
      htmlLabels: false,
      flowchart: { htmlLabels: false },
      class: { htmlLabels: false },
      fontFamily: "system-ui, sans-serif",
      suppressErrorRendering: true,
      // What a diagram may not set for itself.
      secure: ["secure", "securityLevel", "startOnLoad", "maxTextSize", "maxEdges", "suppressErrorRendering", "htmlLabels", "themeCSS", "fontFamily", "altFontFamily", "dompurifyConfig"],
    });
    const { svg } = await mermaid.render(`diagram${number}`, source);
    return { number, ...picture(svg) };
  } catch (error) {
    return { number, error: error instanceof Error ? error.message : String(error) };
  } finally {
    document.body.replaceChildren();
  }
};

// The drawing as a picture of its own: well-formed, and as large as it was drawn.
const picture = (text: string): { svg: string; width: number } => {
  const svg = new DOMParser().parseFromString(text, "text/html").querySelector("svg");
  if (!svg) throw new Error("nothing was drawn");
  const [, , width = 0, height = 0] = (svg.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
  if (width > 0 && height > 0) {
    svg.setAttribute("width", `${width}`);
    svg.setAttribute("height", `${height}`);
  }
  svg.style.maxWidth = "";
  return { svg: new XMLSerializer().serializeToString(svg), width };
};
