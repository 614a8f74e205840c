// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// access observes whether the API server accepts what a kubeconfig contains, and logs it when that changes. Requests
// are repeated without end, since an API server that starts refuses what it accepts a moment later, and a token or a
// certificate may be renewed. Each of them is logged where it is made; only here does the log name the file and the
// cause.
type access struct {
	cfg  *rest.Config // as it was read
	from string       // the kubeconfig

	mu      sync.Mutex
	refused string // why, as logged last; empty while it is accepted
}

// observeAccess makes clients of cfg log when the API server refuses its credentials, or cannot be the one of cfg.
func observeAccess(cfg *rest.Config, from string) {
	a := &access{cfg: rest.CopyConfig(cfg), from: from}
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return observed{a, next} })
}

// observed is the connection of one client.
type observed struct {
	*access
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (o observed) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(r)
	switch {
	case err != nil:
		if why := wrongServer(err); why != "" {
			o.note(why)
		}
	case resp.StatusCode == http.StatusUnauthorized:
		o.note(o.wrongCredentials(time.Now()))
	default:
		o.note("")
	}
	return resp, err
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper, by which client-go finds the connection below.
func (o observed) WrappedRoundTripper() http.RoundTripper { return o.next }

// note logs a change of why requests are refused; empty if they are not.
func (a *access) note(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if why == a.refused {
		return
	}
	a.refused = why
	if why == "" {
		klog.Background().Info("The API server accepts the kubeconfig again", "kubeconfig", a.from,
			"server", a.cfg.Host)
		return
	}
	klog.Background().Error(nil, "The API server refuses the kubeconfig; requests are repeated until it accepts them",
		"kubeconfig", a.from, "server", a.cfg.Host, "why", why)
}

// wrongServer returns why the certificate of a server is not the expected one; empty for other errors.
func wrongServer(err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &authority):
		return "the certificate of the server is signed by another authority than the kubeconfig names: it is " +
			"another cluster, or a proxy is between"
	case errors.As(err, &host):
		return "the certificate of the server is for another address: " + host.Error()
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the certificate of the server is valid from %s to %s, and the clock of this machine "+
			"shows %s", day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter), day(time.Now()))
	}
	return ""
}

func day(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// wrongCredentials returns why an API server may refuse the credentials.
func (a *access) wrongCredentials(now time.Time) string {
	leaf, has := ClientCertificate(a.cfg)
	switch {
	case has && now.After(leaf.NotAfter):
		return fmt.Sprintf("the client certificate of user %q expired at %s", leaf.Subject.CommonName,
			day(leaf.NotAfter))
	case has && now.Before(leaf.NotBefore):
		return fmt.Sprintf("the client certificate of user %q is valid from %s on, and the clock of this machine "+
			"shows %s", leaf.Subject.CommonName, day(leaf.NotBefore), day(now))
	case has:
		return fmt.Sprintf("the client certificate of user %q is not accepted: it is of another cluster, or the "+
			"clocks of this machine and of the API server differ", leaf.Subject.CommonName)
	case a.cfg.BearerTokenFile != "":
		return "the token in " + a.cfg.BearerTokenFile + " is not accepted: it has expired, or is of another cluster"
	case a.cfg.BearerToken != "":
		return "its token is not accepted: it has expired, or is of another cluster"
	case a.cfg.ExecProvider != nil:
		return "the credentials that " + a.cfg.ExecProvider.Command + " prints are not accepted"
	}
	return "it has no credentials: neither a client certificate nor a token"
}

// ClientCertificate returns the client certificate of a configuration, if it has one that can be read.
func ClientCertificate(cfg *rest.Config) (leaf *x509.Certificate, ok bool) {
	var pair tls.Certificate
	var err error
	if c := cfg.TLSClientConfig; len(c.CertData) > 0 {
		pair, err = tls.X509KeyPair(c.CertData, c.KeyData)
	} else if c.CertFile != "" {
		pair, err = tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	}
	if err != nil || len(pair.Certificate) == 0 {
		return nil, false
	}
	leaf, err = x509.ParseCertificate(pair.Certificate[0])
	return leaf, err == nil
}
