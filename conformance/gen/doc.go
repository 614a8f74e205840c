// SPDX-License-Identifier: Apache-2.0

// Package gen owns the generation of random clusters, profiles and pods for the compared
// plugins, from a seed: the same seed and number give the same scenario on every machine. It
// aims at the edges of each rule, not at realistic load: label values that do not parse, absent
// and zero allocatable, requests of "0", resizes in every state, port wildcards, terms that can
// never match, claims and volumes in every state, selectors that do not convert.
//
// Half of the pods have requests for many plugins; the others for one, so that this plugin
// decides (simple, corner).
//
// Rejected: rapid as the source of cases. Its shrinking works on the byte stream
// it draws from and needs many thousand replays of both schedulers; package diff
// shrinks the objects themselves, which ends sooner and reads better.
package gen
