// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/bench/standin"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
)

// RunStandin measures starts with a simulated API server.
func RunStandin(ctx context.Context, o testbed.Options) (_ Report, err error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if err := completeRestart(&o); err != nil {
		return Report{}, err
	}
	f, err := newStandinCluster(o)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	return startAll(ctx, o, f)
}

// standinCluster is a simulated API server full of bound pods.
type standinCluster struct {
	*standin.Server
	dir  string
	file string // kubeconfig
}

// newStandinCluster fills a simulated API server with the nodes and pods of a local cluster.
func newStandinCluster(o testbed.Options) (*standinCluster, error) {
	fmt.Fprintf(o.Progress, "filling a stand-in with %d nodes and %d bound pods\n", o.Nodes, o.Pods)
	server, err := standin.Start()
	if err != nil {
		return nil, err
	}
	f := &standinCluster{Server: server}
	if f.dir, err = os.MkdirTemp("", "kumiki-bench-"); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	if f.file, err = server.WriteKubeconfig(f.dir); err != nil {
		return nil, errors.Join(err, f.close())
	}
	server.AddNamespace(namespace)
	for i := range o.Nodes {
		server.AddNode(standin.Node(i))
	}
	for i := range o.Pods {
		p := standin.ServicePod(namespace, podName(i), standin.NodeName(i%o.Nodes), i)
		standin.AsStored(p)
		server.AddPod(p)
	}
	return f, nil
}

func (f *standinCluster) close() error { return errors.Join(f.Close(), os.RemoveAll(f.dir)) }

func (f *standinCluster) kubeconfigs() (scheduler, admin string) { return f.file, f.file }

func (f *standinCluster) wait(_ context.Context, p *corev1.Pod) error {
	standin.AsStored(p)
	f.AddPod(p)
	return nil
}

func (f *standinCluster) isBound(_ context.Context, name string) (bool, error) {
	return !f.Bound(namespace, name).IsZero(), nil
}

func (f *standinCluster) sent(context.Context) (Sent, error) {
	sent := Sent{}
	for resource, v := range f.Sent() { // order: into a map
		sent[resource] = Volume(v)
	}
	return sent, nil
}

func (f *standinCluster) listed() time.Time {
	pods, nodes := f.Streamed("pods"), f.Streamed("nodes")
	if nodes.After(pods) {
		return nodes
	}
	return pods
}

// serverPids returns none: this process serves.
func (f *standinCluster) serverPids() []int { return nil }
