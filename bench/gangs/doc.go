// SPDX-License-Identifier: Apache-2.0

// Package gangs compares ways to schedule gangs on small workloads, each of which shows a known failure of some of
// them. It owns the workloads, named after the issues that report the failures, their measurements, the models of
// other schedulers, and a simulation in virtual time of these models and of the engine.
//
// A model is a Style, which a scheduling loop of this package runs: kube-scheduler's cycle for one pod, with Permit.
// It shares the cluster state, the queue and the search for a node with the engine, so that only the rules of a style
// differ.
//
// Rejected: the styles as a mode of the engine, which needed hooks at twelve places of production code, for models
// that are not for production.
package gangs
