// What the page and the frame that draws say to each other.

export interface Asked {
  number: number;
  source: string;
  dark: boolean;
}

export type Answered = { number: number } & ({ svg: string; width: number } | { error: string });
