// A part of a document that stands for the whole: what is not read of it is left out.
export type PartOf<T> = T extends (infer Item)[] ? PartOf<Item>[] : T extends object ? { [Key in keyof T]?: PartOf<T[Key]> } : T;

export const wholeOf = <T>(part: PartOf<T>): T => part as unknown as T;
