// SPDX-License-Identifier: Apache-2.0

// Package config owns the comparison of what a configuration file means to kube-scheduler 1.36.3 and to kumiki:
// whether it is accepted, at which fields it is wrong, and what it comes to with every default filled in. It also
// owns what is generated out of upstream's types: the JSON schema that kumiki ships, and the table of feature gates
// in docs/compatibility.md.
//
// Upstream's side is the way of cmd/kube-scheduler: strict decoding, defaulting and conversion through its scheme,
// its validation, and then the making of the scheduler itself, because plugins and extenders refuse arguments only
// when they are made.
package config
