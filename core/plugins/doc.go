// SPDX-License-Identifier: Apache-2.0

// Package plugins owns the list of the default plugins: their registrations and upstream's default profile. The plugins
// themselves are in packages by subject below this one.
package plugins
