// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/kumiki-scheduler/kumiki/kube"
)

// explain completes an error of the API server by what to do about the kubeconfig, if that is the cause.
func explain(cfg *rest.Config, err error) error {
	var authority x509.UnknownAuthorityError
	var refused *net.OpError
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err):
		if end, ok := expired(cfg, time.Now()); ok {
			return fmt.Errorf("the client certificate in your kubeconfig expired on %s (%w)",
				end.Format(time.DateOnly), err)
		}
		return fmt.Errorf("the API server %s does not accept your credentials: they have expired, or are of another "+
			"cluster; `kubectl auth whoami` shows who you are (%w)", cfg.Host, err)
	case errors.As(err, &authority):
		return fmt.Errorf("the API server %s is not that of your kubeconfig: its certificate is signed by another "+
			"authority; is it another cluster, or an earlier one at the same address? (%w)", cfg.Host, err)
	case errors.As(err, &refused):
		return fmt.Errorf("the API server %s cannot be reached: does the cluster run, and is this its kubeconfig "+
			"(--kubeconfig, --context)? (%w)", cfg.Host, err)
	}
	return err
}

// expired reports whether the client certificate of a kubeconfig has expired, and when.
func expired(cfg *rest.Config, now time.Time) (end time.Time, ok bool) {
	leaf, has := kube.ClientCertificate(cfg)
	if !has {
		return time.Time{}, false
	}
	return leaf.NotAfter, now.After(leaf.NotAfter)
}
