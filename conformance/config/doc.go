// SPDX-License-Identifier: Apache-2.0

// Package config owns the comparison of what a configuration file means to kube-scheduler 1.37.1 and to kumiki, with
// feature gates off and on: whether it is accepted, which fields are wrong, and the effective configuration with all
// defaults. It also owns what is generated from upstream's types: the JSON schema that kumiki ships, and the table of
// feature gates in docs/compatibility.md.
//
// Upstream's side does the same as cmd/kube-scheduler: strict decoding, defaulting and conversion through its scheme,
// validation, and then the construction of the scheduler, because plugins and extenders reject arguments only when
// they are constructed.
package config
