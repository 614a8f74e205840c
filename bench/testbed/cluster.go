// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube"
)

// Cluster is a local cluster with clients of this program.
type Cluster struct {
	Local   *testcluster.Cluster
	Clients *kube.Clients
	Client  *kubernetes.Clientset // for writes and reads of this program
	Servers []int                 // process ids of API server and etcd; set by clear
}

// NewCluster connects to a cluster. The caller closes clients.
func NewCluster(c *testcluster.Cluster) (*Cluster, error) {
	cfg, err := kube.RestConfig(kube.ClientOptions{Kubeconfig: c.Kubeconfig, QPS: -1})
	if err != nil {
		return nil, err
	}
	clients, err := kube.NewClients(cfg)
	if err != nil {
		return nil, err
	}
	return &Cluster{Local: c, Clients: clients, Client: clients.Binds}, nil
}

// Pause waits for d. It returns the error of ctx if that ends first.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
