// SPDX-License-Identifier: Apache-2.0

// Package serve owns the https endpoints of a scheduler: health, metrics, configuration, version and profiling, with
// authentication and authorization delegated to the API server. It knows the loop and the lease only as Health.
package serve
