// Charts, drawn by Chart.js on a canvas. It comes from the server when the first chart is about to be seen.

import type { Chart, ChartConfiguration } from "chart.js";
import { named, whenNear } from "../dom";
import { type Fields, isObject, type Part, words } from "../history";
import { dark } from "../theme";
import { data } from "./data";

export const chart = (part: Part): HTMLElement => {
  const config = part.chartConfig;
  const place = named("div", "canvas");
  const figure = named("figure", "chart", place, data("Data of the chart", config));
  whenNear(figure, () => void draw(place, config));
  return figure;
};

const draw = async (place: HTMLElement, given: unknown): Promise<void> => {
  const config = isObject(given) ? given : {};
  let drawn: Chart | null = null;
  const again = async () => {
    const { default: Chart } = await import("chart.js/auto");
    const made = still(config);
    // Without data Chart.js would not say that it does not know the type.
    Chart.registry.getController(words(config.type));
    const styles = getComputedStyle(place);
    Chart.defaults.color = styles.getPropertyValue("--quiet");
    // Not `borderColor`: Chart.js gives colours of its own only to sets whose defaults nobody changed.
    Chart.defaults.scale.grid.color = styles.getPropertyValue("--line");
    Chart.defaults.font.family = styles.fontFamily;
    drawn?.destroy();
    place.replaceChildren();
    const canvas = document.createElement("canvas");
    place.append(canvas);
    drawn = new Chart(canvas, made);
  };
  try {
    await again();
    dark.addEventListener("change", () => void again());
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    place.replaceChildren(named("p", "elsewhere", `📊 This chart cannot be drawn: ${why}`));
  }
};

// A copy that does not move, since Chart.js writes into what it is given.
const still = (config: Fields): ChartConfiguration => {
  const copy = structuredClone(config);
  const options = isObject(copy.options) ? copy.options : {};
  return { ...copy, options: { ...options, animation: false, responsive: true } } as unknown as ChartConfiguration;
};
