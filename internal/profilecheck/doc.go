// SPDX-License-Identifier: Apache-2.0

// Package profilecheck owns the check of the bottleneck finder on a real local cluster: it injects causes into kumiki
// and kube-scheduler, each with a strength drawn from a seed, records a profile while the cause acts, and compares the
// cause that is named with the one that was injected. Then it removes the cause, and compares the gain with the
// predicted one. The result is a confusion matrix.
//
// Most causes come from outside: a proxy or a socket that delays, a process that is stopped, a setting, pods of a kind.
// Some need a scheduler with a fault: for these, kumiki is compiled with calls of package inject in some functions.
// Causes that are not injected into kube-scheduler are in NotInjected with the reason, so that the matrix does not
// suggest more than was checked.
//
// Results are kept in a journal. The identity of the programs is part of a result, so that a check which goes on after
// an abort does not mix results of two versions.
package profilecheck
