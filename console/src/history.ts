// The messages of a history, as far as the page looks into them. docs/history.md has the whole format. What an application stored
// may have any shape, so everything but the skeleton is unknown until it was looked at.

export interface Message {
  role: string;
  interaction_id: string;
  text_content: string | null;
  parts: Part[];
  response_text_main: string | null;
  timestamp: string;
  processing_time_ms: number | null;
  model_used: string | null;
  is_welcome_message?: boolean;
  status?: string;
}

export interface Part {
  type: string;
  [field: string]: unknown;
}

// What a message grew by: text at the end of one of its parts.
export interface Delta {
  interaction_id: string;
  role: string;
  part: number;
  text: string;
  main?: boolean;
}

export type Fields = Record<string, unknown>;

export const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

// The value as words to show: nothing for what is missing, JSON for what is no text.
export const words = (value: unknown): string => {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
};

// The value as JSON on several lines, and as it is when it is text already.
export const spelled = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");

export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

// What there is to show of a message: its parts, or its text when it has none.
export const shownParts = (message: Message): Part[] => {
  if (message.parts.length > 0) return message.parts;
  const text = message.text_content ?? message.response_text_main ?? "";
  return text === "" ? [] : [{ type: "text_output", text }];
};
