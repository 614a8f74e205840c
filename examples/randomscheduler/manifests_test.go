// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/examples/randomscheduler/random"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/host/framework/plugintest"
)

//go:embed testdata/manifests.yaml
var manifests string

//go:embed config.yaml
var configuration string

// TestManifests runs the plugin on nodes and pods from manifests, as kubectl has them, and looks at what became of them.
func TestManifests(t *testing.T) {
	c := plugintest.Start(t, plugintest.Options{Config: configuration, Plugins: []framework.Registration{
		{Name: random.Name, Factory: random.New}}})
	c.Apply(manifests)

	small := c.Pod("small")
	if small.Node == "" || small.Decision.Winner.Total != 100 {
		t.Errorf("small has not the score of the draw: %+v", small)
	}
	if n := c.Plugin(random.Name).(*random.Plugin).Reserved(small.Node); n != 1 {
		t.Errorf("the plugin counts %d pods on %s", n, small.Node)
	}
	big := c.Pod("big")
	if want := "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 Preemption is not " +
		"helpful for scheduling."; big.Message != want {
		t.Errorf("big: %+v", big)
	}

	c.Apply("apiVersion: v1\nkind: Node\nmetadata: {name: c}\nstatus: {allocatable: {cpu: 16, memory: 8Gi, pods: 110}}")
	c.Advance(10 * time.Second) // the backoff
	if big = c.Pod("big"); big.Node != "c" {
		t.Errorf("big, after a large node has come: %+v", big)
	}
	if problems := c.Problems(); len(problems) > 0 {
		t.Errorf("the plugin misbehaved: %v", problems)
	}
}
