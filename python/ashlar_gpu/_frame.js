// Starts the page in its frame of a notebook. One frame holds the page's program and hands it to the others, whichever comes
// first; the policy of each frame lets only that very program run, so that it may come from anywhere.
(() => {
  const program = document.documentElement.dataset.program;
  const waiting = document.getElementById('waiting');
  let packed = null;

  const textOf = (id) => document.getElementById(id)?.textContent ?? null;
  const unpack = (base64) => {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
  };
  const add = (parent, tag, text, attributes = {}) => {
    parent.append(Object.assign(document.createElement(tag), { textContent: text, ...attributes }));
  };
  const start = async (given) => {
    const { style, script } = JSON.parse(await unpack(given));
    if (packed !== null) return;
    packed = given;
    add(document.body, 'script', await unpack(textOf('packed-document')), { type: 'application/json', id: 'ashlar-document' });
    add(document.head, 'style', style);
    add(document.body, 'script', script);
    if (waiting.isConnected) packed = null; // another program, which did not run
    else tellAll({ has: true });
  };

  // The frames of the notebook, wherever it puts them.
  const tell = (frame, what) => frame.postMessage({ ashlarProgram: program, ...what }, '*');
  const tellAll = (what, within = top) => {
    for (let i = 0; i < within.length; ++i) {
      if (within[i] !== window) tell(within[i], what);
      tellAll(what, within[i]);
    }
  };
  addEventListener('message', ({ data, source }) => {
    if (data?.ashlarProgram !== program || source === null) return;
    if (data.wants && packed !== null) tell(source, { packed });
    else if (data.has && packed === null) tell(source, { wants: true });
    else if (typeof data.packed === 'string' && packed === null) start(data.packed).catch(() => undefined);
  });

  const own = textOf('packed-program');
  if (own === null) tellAll({ wants: true });
  else start(own).catch((error) => console.error(error));
  setTimeout(() => { waiting.hidden = false; }, 1500);
})();
