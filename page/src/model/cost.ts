// What drawing did, counted: the same on every machine, so that a test can hold a frame's cost where a clock cannot. The page
// shows it to tests as globalThis.ashlarCost.
export const cost = {
  curves: 0, // times that a curve was drawn
  bands: 0, // times that the blocks over time were laid on their plot
  maps: 0, // times that a map was drawn
  samples: 0, // values of columns that a curve read
  blocks: 0, // blocks that came into use or left it, or were painted
  pixels: 0, // written into pictures
  rests: 0, // pieces of work done when the view has come to rest: in no frame of a gesture
  waiting: 0, // pieces of work that are left for later: no count, but how many there are now
};
