// SPDX-License-Identifier: Apache-2.0

// Package text owns the display of reports at a terminal: headlines, tables and durations. It reads records only, so
// its output depends on nothing else; times are relative to the time of the report.
package text
