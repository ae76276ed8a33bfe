#!/usr/bin/env bash
# page/check.sh [ASHLAR]: all that is checked of the page: types, unit tests, that the committed bundle is what its
# source makes, and the page in Chromium. ASHLAR is the program that makes pages of recorded files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
root=$(cd .. && pwd)
export ASHLAR=${1:-$root/build/release/bin/ashlar}

# What npm installed once stays, while the lock file is the same.
if ! cmp -s package-lock.json node_modules/.installed-lock; then
  npm ci --no-audit --no-fund --ignore-scripts
  cp package-lock.json node_modules/.installed-lock
fi

npx tsc --noEmit
npx vitest run

mkdir -p "$root/build/page"
npx vite build --outDir "$root/build/page/dist" --emptyOutDir --logLevel warn
cmp dist/page.html "$root/build/page/dist/page.html" || {
  echo "check.sh: dist/page.html is not what src makes: run 'npm run build' in page and commit dist/page.html" >&2
  exit 1
}

npx vitest run --config vitest.browser.config.ts
