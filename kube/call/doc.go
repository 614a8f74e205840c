// SPDX-License-Identifier: Apache-2.0

// Package call owns what all calls to the API server have in common: their time limits, the wait between two of them,
// the record of how long the parts of a write take, the clock of such times, and the name of a pod in logs.
package call
