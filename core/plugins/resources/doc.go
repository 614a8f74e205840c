// SPDX-License-Identifier: Apache-2.0

// Package resources owns the plugins that decide by the amounts of resources that pods request and nodes offer.
package resources
