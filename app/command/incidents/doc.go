// SPDX-License-Identifier: Apache-2.0

// Package incidents owns the bundles of incidents: it writes what the flight recorder keeps, if something is detected,
// keeps a few of them in memory and more in a directory, and serves them.
//
// A bundle contains no environment values, no secrets and no annotations except those of volumes: its events are those
// of a recording. The configuration is without keys.
package incidents
