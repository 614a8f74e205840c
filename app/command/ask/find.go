// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/kube/serve"
)

// Where is how the scheduler is found.
type Where struct {
	// Namespace and Lease name the lease of the scheduler.
	Namespace, Lease string
	// Endpoint, if set, is dialled instead of the address in the lease, for a forwarded port. The certificate is
	// still verified for the address in the lease.
	Endpoint string
}

// Default returns where a scheduler is by default.
func Default() Where { return Where{Namespace: metav1.NamespaceSystem, Lease: "kube-scheduler"} }

// Client sends questions to one running scheduler.
type Client struct {
	http *http.Client
	base string // https://host:port
	// Holder is the identity in the lease.
	Holder string
}

// Find looks up the lease and returns a client for its holder. cfg is how the user reaches the API server.
func Find(ctx context.Context, cfg *rest.Config, w Where) (*Client, error) {
	api, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	lease, err := api.CoordinationV1().Leases(w.Namespace).Get(ctx, w.Lease, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("no scheduler runs: there is no lease %s/%s; start one with `kumiki scheduler` or "+
			"`kumiki up`", w.Namespace, w.Lease)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("you may not read the lease that names the scheduler: grant get on "+
			"leases.coordination.k8s.io %q in namespace %q (%w)", w.Lease, w.Namespace, err)
	case err != nil:
		return nil, fmt.Errorf("reading lease %s/%s: %w", w.Namespace, w.Lease, err)
	}
	if err := usable(lease, time.Now()); err != nil {
		return nil, err
	}
	endpoint, err := kube.EndpointOf(lease)
	if err != nil {
		return nil, err
	}
	return dial(cfg, endpoint, *lease.Spec.HolderIdentity, w.Endpoint)
}

// usable returns an error unless a live kumiki holds the lease.
func usable(lease *coordinationv1.Lease, now time.Time) error {
	name := lease.Namespace + "/" + lease.Name
	holder := ""
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	if holder == "" {
		return fmt.Errorf("no scheduler runs: no process holds lease %s", name)
	}
	if lease.Annotations[kube.EndpointAnnotation] == "" {
		return fmt.Errorf("the scheduler that holds lease %s is %q and not kumiki, or serves no https: the lease "+
			"has no annotation %s",
			name, holder, kube.EndpointAnnotation)
	}
	if wrote := lease.Annotations[kube.HolderAnnotation]; wrote != "" && wrote != holder {
		return fmt.Errorf("the scheduler that holds lease %s is %q and not kumiki: the address in the lease was "+
			"left there by %q", name, holder, wrote)
	}
	// Clocks differ, so only a lease that is long overdue counts as abandoned.
	s := lease.Spec
	if s.RenewTime != nil && s.LeaseDurationSeconds != nil {
		if late := now.Sub(s.RenewTime.Time); late > 4*time.Duration(*s.LeaseDurationSeconds)*time.Second {
			return fmt.Errorf("no scheduler runs: %q holds lease %s, but has not renewed it for %s", holder, name,
				late.Round(time.Second))
		}
	}
	return nil
}

// dial makes the client: the user's credentials, the scheduler's address and certificate.
func dial(cfg *rest.Config, endpoint serve.Endpoint, holder, through string) (*Client, error) {
	ours := rest.CopyConfig(cfg)
	host, _, err := net.SplitHostPort(endpoint.Address)
	if err != nil {
		return nil, fmt.Errorf("address %q of the scheduler in the lease: %w", endpoint.Address, err)
	}
	address := endpoint.Address
	if through != "" {
		address = through
	}
	ours.Host, ours.APIPath = "https://"+address, ""
	ours.Proxy = nil // the proxy in the kubeconfig is for the API server
	ours.Timeout = 0
	ours.TLSClientConfig.Insecure = false
	ours.TLSClientConfig.CAFile, ours.TLSClientConfig.CAData = "", endpoint.CA
	ours.TLSClientConfig.ServerName = host
	client, err := rest.HTTPClientFor(ours)
	if err != nil {
		return nil, fmt.Errorf("client of the scheduler at %s: %w", address, err)
	}
	return &Client{http: client, base: strings.TrimSuffix(ours.Host, "/"), Holder: holder}, nil
}
