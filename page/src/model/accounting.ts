// Where the bytes went, as the text of `ashlar explain` has it (commands/explain/explain_text.cc): its title, its rows, and each row's
// share of the whole that the title names.
import type { Accounting, Explanation } from '../document/answers/explain';
import { bytes } from '../view/format';

export interface PartRow {
  name: string;
  kind: string;
  bytes: number;
  remark: string;
  isBeside?: boolean; // no part of the whole
}

export interface WhereItWent {
  title: string;
  whole: number;
  rows: PartRow[];
}

const kRest: [keyof Accounting, string, string, string][] = [
  ['pending_bytes', 'pending frees', 'pending', 'freed by the program; another stream may still use them'],
  ['stranded_bytes', 'stranded', 'stranded', 'free, in segments that hold a block in use'],
  ['whole_free_bytes', 'whole-free segments', 'free', 'cached; the allocator can return them'],
  ['private_pool_bytes', "private pools' holes", 'private', 'free, for CUDA graphs and MemPools alone'],
  ['outside_bytes', 'outside', 'outside', 'CUDA context, other libraries and processes'],
  ['free_bytes', 'free on the device', 'device-free', '']];

function rowsOf(accounting: Accounting, isCalls: boolean): PartRow[] {
  const { live_bytes: live, rounding_bytes: rounding, total_bytes: total, reserved_bytes: reserved } = accounting;
  const rows: PartRow[] = live === null
    ? [{ name: 'live blocks', kind: 'live', bytes: accounting.allocated_bytes ?? 0, remark: 'requests and rounding' }]
    : [{ name: isCalls ? 'live allocations' : 'live tensors', kind: 'live', bytes: live, remark: '' },
      { name: 'rounding', kind: 'rounding', bytes: rounding ?? 0, remark: 'what blocks span beyond the requests' }];
  for (const [key, name, kind, remark] of kRest) {
    const isBeside = total === null && (kind === 'outside' || kind === 'device-free');
    rows.push({ name, kind, bytes: accounting[key] ?? 0, isBeside, remark: isBeside ? 'beside what is reserved' : remark });
  }
  const isOpen = !isCalls && total !== null && reserved !== null && accounting.outside_bytes === null && accounting.free_bytes === null;
  if (isOpen && total > reserved)
    rows.push({ name: 'outside or free', kind: 'device-free', bytes: total - reserved, remark: 'how much of each is not in this trace' });
  return rows.filter((row) => row.bytes !== 0);
}

// "NCCL 2.00 GiB, the program (app) 1.00 GiB", where several libraries asked the device.
function ownersOf(explanation: Explanation): string[] {
  const owners = explanation.by_library?.owners ?? [];
  return owners.length < 2 ? [] : owners.map((of) => `${of.owner} ${bytes(of.bytes)}`);
}

// Those but the allocator that the snapshot is of, which reserved what the other rows are of.
const kAllocator = "PyTorch's allocator";
const besideAllocator = (explanation: Explanation) => ownersOf(explanation).filter((owner) => !owner.startsWith(kAllocator));

// Null where the text has no such part.
export function whereItWent(explanation: Explanation): WhereItWent | null {
  const { accounting } = explanation;
  const isCalls = (explanation.live_at_end ?? null) !== null;
  const whole = accounting.total_bytes ?? accounting.reserved_bytes;
  if (whole === null || (isCalls && accounting.total_bytes === null)) return null;
  const rows = rowsOf(accounting, isCalls);
  if (isCalls && rows.length > 0 && rows[0].kind === 'live') rows[0].remark = ownersOf(explanation).join(', ');
  const outside = rows.find((row) => row.kind === 'outside');
  const beside = isCalls ? [] : besideAllocator(explanation);
  if (outside && beside.length > 0) outside.remark = [...beside, 'CUDA context, other processes'].join(', ');
  return { title: `Where ${bytes(whole)}${accounting.total_bytes === null ? ' reserved' : ''} went`, whole, rows };
}
