// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/sim/quality"
)

// upstream is the name of kube-scheduler with its default configuration.
const upstream = "kube-scheduler 1.37.1"

// child is the process with kube-scheduler; it is started once, and ends with this process.
var child *quality.Remote

// remote returns the process with kube-scheduler.
func (o *options) remote() (*quality.Remote, error) {
	if child != nil {
		return child, child.Err()
	}
	if o.upstream == "" {
		return nil, errors.New("--upstream must name the program of conformance/cmd/standalone")
	}
	c := exec.Command(o.upstream)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.upstream, err)
	}
	child = quality.NewRemote(in, out)
	return child, nil
}

// startUpstream starts kube-scheduler on nodes.
func (o *options) startUpstream(nodes []*v1.Node, devices bool, seed int64) (quality.Placer, error) {
	r, err := o.remote()
	if err != nil {
		return nil, err
	}
	r.Start(quality.StartRequest{Seed: seed, Nodes: nodes, Devices: devices})
	return r, r.Err()
}
