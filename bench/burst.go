// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
	"github.com/kumiki-scheduler/kumiki/kube"
)

// burst is a local cluster with clients of this program.
type burst struct {
	cluster *testcluster.Cluster
	clients *kube.Clients
	client  *kubernetes.Clientset // for writes and reads of this program
	servers []int                 // process ids of API server and etcd; set by clear
}

// newBurst connects to a cluster. The caller closes clients.
func newBurst(c *testcluster.Cluster) (*burst, error) {
	cfg, err := kube.RestConfig(kube.ClientOptions{Kubeconfig: c.Kubeconfig, QPS: -1})
	if err != nil {
		return nil, err
	}
	clients, err := kube.NewClients(cfg)
	if err != nil {
		return nil, err
	}
	return &burst{cluster: c, clients: clients, client: clients.Binds}, nil
}

// pause waits for d. It returns the error of ctx if that ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
