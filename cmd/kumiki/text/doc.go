// SPDX-License-Identifier: Apache-2.0

// Package text owns how reports look to a person at a terminal: headlines, tables and durations. It reads records only,
// so what it prints depends on nothing else; times are told relative to the report's own.
package text
