// SPDX-License-Identifier: Apache-2.0

// Package plugintest owns tests of plugins that are written for kube-scheduler's framework: a whole scheduler over
// objects from manifests and in virtual time, with the plugins in it, for go test. It starts no cluster and no process.
//
//	c := plugintest.Start(t, plugintest.Options{Plugins: []framework.Registration{{Name: Name, Factory: New}}})
//	c.Apply(manifests)
//	c.Advance(30 * time.Second)
//	if got := c.Pod("web").Node; got != "a" { ... }
//
// After each change of an object and each step of time, the scheduler runs until it has nothing to do. All calls of
// plugins are made on the goroutine of the test, so a plugin that blocks blocks the test.
package plugintest
