// SPDX-License-Identifier: Apache-2.0

package fakenodes

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	kwoklog "sigs.k8s.io/kwok/pkg/log"

	"github.com/kumiki-scheduler/kumiki/localcluster/admission"
	"github.com/kumiki-scheduler/kumiki/localcluster/nodespec"
	"github.com/kumiki-scheduler/kumiki/localcluster/supervise"
)

// Options are the settings of the role.
type Options struct {
	// Kubeconfig of a user that may do what all kubelets may.
	Kubeconfig string
	// Spec of the nodes that must exist. Nodes that exist already, and others
	// that someone creates, are kept alive as well.
	Spec nodespec.Spec
	// Stages of pods.
	Stages Stages
	// Admission checks bound pods as a kubelet does.
	Admission bool
	// Lease is the duration of node leases; 0 means no heartbeats at all.
	Lease time.Duration
}

// Run does the work of the role until ctx ends. It writes a line
// supervise.NodesReady to standard output when all nodes are schedulable.
func Run(ctx context.Context, opts Options) error {
	config, err := clientcmd.BuildConfigFromFlags("", opts.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	// A connection for each group of calls: node leases must not wait behind
	// pods, and one connection is limited in the streams it carries.
	podClient, err := newClient(config, "kumiki-kubelets")
	if err != nil {
		return err
	}
	nodeClient, err := newClient(config, "kumiki-nodes")
	if err != nil {
		return err
	}

	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: nodeClient.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: "kubelet"})

	// KWOK reports each lease; only what goes wrong is worth a line.
	kwokCtx := kwoklog.NewContext(ctx, kwoklog.NewLogger(os.Stderr, kwoklog.LevelWarn))
	if err := keepNodes(kwokCtx, nodeClient, recorder, opts.Lease); err != nil {
		return err
	}
	l := newLedger()
	l.enforce = opts.Admission
	l.refetch = func(name string) *v1.Node { return getNode(ctx, podClient, name) }
	l.rejected = func(pod *v1.Pod, verdict admission.Verdict) {
		slog.Info("pod refused", "pod", pod.Namespace+"/"+pod.Name, "node", pod.Spec.NodeName, "reason", verdict.Reason)
		recorder.Event(pod, v1.EventTypeWarning, verdict.Reason, verdict.Message)
	}
	k := newKubelets(podClient, l, opts.Stages)
	l.changed = k.queue.Add
	watchCluster(ctx, podClient, l)
	if drivers := opts.Spec.CSIDrivers(); len(drivers) > 0 {
		provisionVolumes(ctx, nodeClient, drivers)
	}
	go func() {
		if err := bringUp(ctx, nodeClient, l, opts.Spec); err != nil && ctx.Err() == nil {
			slog.Error("bring nodes up", "err", err)
			os.Exit(1)
		}
	}()
	k.run(ctx)
	return nil
}

func newClient(config *rest.Config, agent string) (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, agent))
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return client, nil
}

// refetchTimeout is short: the answer of an API server that is away is the node
// as it was last seen.
const refetchTimeout = 2 * time.Second

func getNode(ctx context.Context, client kubernetes.Interface, name string) *v1.Node {
	ctx, cancel := context.WithTimeout(ctx, refetchTimeout)
	defer cancel()
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return node
}

// bringUp creates the nodes of the spec and reports when they are usable.
func bringUp(ctx context.Context, client kubernetes.Interface, l *ledger, spec nodespec.Spec) error {
	nodes, drivers := spec.Nodes(), spec.Drivers()
	if err := createNodes(ctx, client, nodes, drivers); err != nil {
		return err
	}
	names := make([]string, 0, len(nodes))
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	for l.schedulable(names) < len(names) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	line, err := json.Marshal(supervise.NodesReady{ReadyNodes: len(names)})
	if err != nil {
		return fmt.Errorf("encode ready line: %w", err)
	}
	_, err = fmt.Println(string(line))
	return err
}

// createWorkers is how many nodes are created side by side. More only queue at
// the API server.
const createWorkers = 32

// createNodes creates the nodes that do not exist, with what their drivers
// publish.
func createNodes(ctx context.Context, client kubernetes.Interface, nodes []*v1.Node, drivers []nodespec.Drivers) error {
	todo := make(chan int)
	failed := make(chan error, createWorkers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range createWorkers {
		go func() {
			for i := range todo {
				err := createNode(ctx, client, nodes[i])
				if err == nil {
					err = publish(ctx, client, nodes[i].Name, drivers[i])
				}
				if err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	go func() {
		defer close(todo)
		for i := range nodes {
			select {
			case todo <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	var first error
	for range createWorkers {
		if err := <-failed; err != nil && first == nil {
			first = err
			cancel()
		}
	}
	return first
}

// createNode creates a node that is Ready from the start, as a kubelet that
// registers may, which saves a write. It tries for as long as ctx lives: an API
// server that is being restarted is no reason to give up.
func createNode(ctx context.Context, client kubernetes.Interface, node *v1.Node) error {
	now := metav1.Now()
	node.Status.Conditions = []v1.NodeCondition{
		{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
		{Type: v1.NodeMemoryPressure, Status: v1.ConditionFalse, Reason: "KubeletHasSufficientMemory"},
		{Type: v1.NodeDiskPressure, Status: v1.ConditionFalse, Reason: "KubeletHasNoDiskPressure"},
		{Type: v1.NodePIDPressure, Status: v1.ConditionFalse, Reason: "KubeletHasSufficientPID"},
	}
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime = now
		node.Status.Conditions[i].LastTransitionTime = now
	}
	return insist(ctx, "create node "+node.Name, func() error {
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	})
}

// insist does a write until it is done, the API server refuses, or ctx ends.
// What exists already is done.
func insist(ctx context.Context, what string, write func() error) error {
	for {
		err := write()
		switch {
		case err == nil, apierrors.IsAlreadyExists(err):
			return nil
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err):
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
