// Whether the system is set to dark colours.
export const dark = matchMedia("(prefers-color-scheme: dark)");
