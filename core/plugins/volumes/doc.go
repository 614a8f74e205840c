// SPDX-License-Identifier: Apache-2.0

// Package volumes owns the plugins for storage: reachability of volumes, volumes for claims, limits of drivers,
// exclusive access, zones.
package volumes
