// SPDX-License-Identifier: Apache-2.0

// Package simtest owns scenarios of the simulator in go test, with plugins that are written for kube-scheduler's
// framework in the scheduler, and the whole simulated cluster around them.
//
//	out := simtest.Run(t, simtest.Options{Plugins: []framework.Registration{{Name: Name, Factory: New}}, Scenario: s})
//
// The clients and informers of plugins are fed by the simulated cluster: they show what the scheduler has seen, with
// the delay of its watch. Time is virtual. A plugin that sleeps takes real time that the simulation does not see, so
// that it has no effect on results; Outcome.Problems names it.
//
// All calls of plugins are made on the goroutine of the test. PreBind and Bind run when the scheduler decides to bind,
// before the call of the API server, and take no virtual time.
package simtest
