// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/dynamic"

	"github.com/kumiki-scheduler/kumiki/bench/ops"
	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube"
)

// tapeName is the recording in the directory of a run. It gets the name when the run is over.
const tapeName = "run.tape"

// recordRun runs a workload on a new local cluster, and keeps the recording of the scheduler in a directory.
func (s *settings) recordRun(ctx context.Context, r run, dir string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	p, err := plan(r.family, r.nodes, r.seed)
	if err != nil {
		return err
	}
	options := testbed.ClusterOptions(&p)
	options.BinaryDir = s.localcluster
	local, err := testcluster.Launch(ctx, options)
	if err != nil {
		return fmt.Errorf("starting the cluster: %w", err)
	}
	defer func() { err = errors.Join(err, local.Close()) }()
	c, err := testbed.NewCluster(local)
	if err != nil {
		return err
	}
	defer c.Clients.Close()
	if err := c.Quiesce(false); err != nil {
		return fmt.Errorf("quieting the cluster: %w", err)
	}
	cfg, err := kube.RestConfig(kube.ClientOptions{Kubeconfig: local.Kubeconfig, QPS: -1})
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	tape := filepath.Join(dir, "unfinished.tape")
	gates, _ := testbed.Gates(&p)
	scheduler, err := testbed.Start(ctx, testbed.Options{KumikiBinary: s.kumiki, QPS: testbed.DefaultQPS,
		Burst: testbed.DefaultBurst, Gates: gates, Args: []string{"--record=" + tape}}, report.Kumiki,
		local.SchedulerKubeconfig, dir)
	if err != nil {
		return err
	}
	err = errors.Join(scheduler.Connect(local.Kubeconfig), scheduler.WaitReady(ctx))
	if err == nil {
		_, err = ops.Run(ctx, ops.Env{Client: c.Client, Dynamic: objects, Watch: ops.NewWatch(nil)}, p)
	}
	scheduler.Close() // ends the recording
	if err != nil {
		return err
	}
	return os.Rename(tape, filepath.Join(dir, tapeName))
}
