// SPDX-License-Identifier: Apache-2.0

// Package sim owns virtual time: it runs schedulers against a simulated API server and cluster, as a function of a
// Setup, what is created in it and a seed. A run reads no clock, starts no goroutine and does no I/O.
//
// World is the API server with its nodes, kubelets and clock. A scheduler is anything that takes engine events and
// returns engine effects: the production engine, or a model of another scheduler. Each scheduler sees the cluster
// through a watch of its own, which lags, and acts on it through calls that take time, wait for each other, fail, or
// lose their answers. Controllers (ReplicaSet, Job, gang) create pods and replace them.
//
// Everything happens in one order: by time, then in the order in which it was requested. Random draws are functions of
// the seed, a stream and a number, so that two schedulers under one seed meet the same arrivals, durations and
// failures, however they differ. The arithmetic of draws gives the same bits on every machine.
//
// docs/design/0013-simulator.md says what is modelled and what is not.
package sim
