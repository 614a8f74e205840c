// SPDX-License-Identifier: Apache-2.0

// Package gangs compares ways to schedule gangs on small workloads, each of which shows a known failure of some of
// them. It owns the workloads, named after the issues that report the failures, what is measured of them, the models
// of other schedulers, and a simulation in virtual time of these models and of the engine.
//
// A model is a Style, which a scheduling loop of this package runs: kube-scheduler's cycle for one pod, with Permit.
// It shares the cluster state, the queue and the search for a node with the engine, so that the rules of a style are
// all that differs.
//
// Rejected: the styles as a mode of the engine, as they were: hooks at twelve places of production code, for models
// that are not for production.
package gangs
