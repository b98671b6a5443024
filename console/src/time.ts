// Times as people read them.

import { element } from "./dom";

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const calendar = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

// The time of day, with the date for who points at it; nothing when it cannot be read.
export const time = (text: string): HTMLTimeElement | null => {
  const when = new Date(text);
  if (Number.isNaN(when.getTime())) return null;
  return element("time", { dateTime: text, textContent: clock.format(when), title: calendar.format(when) });
};

export const date = (text: string): HTMLTimeElement | null => {
  const when = new Date(text);
  if (Number.isNaN(when.getTime())) return null;
  return element("time", { dateTime: text, textContent: calendar.format(when), title: text });
};

export const duration = (milliseconds: number): string => {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
};
