import { defineConfig } from 'vitest/config';

// One page at a time: the tests of speed would measure each other.
export default defineConfig({
  test: {
    include: ['tests/browser/*.test.ts'], fileParallelism: false, testTimeout: 120000, hookTimeout: 120000,
    globalSetup: ['tests/browser/make_pages.ts'] } });
