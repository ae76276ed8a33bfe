import { defineConfig } from 'vitest/config';

// The analyzer's page in browsers, which tools/web has packed. One at a time: a tab may take gigabytes.
export default defineConfig({
  test: { include: ['tests/web/*.test.ts'], fileParallelism: false, testTimeout: 180000, hookTimeout: 60000 } });
