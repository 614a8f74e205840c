// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// A kubeconfig's user reaches a server of the same authority and is seen there
// with its name and groups; a user of another authority is turned away.
func TestKubeconfigReachesServer(t *testing.T) {
	ca := newAuthority(t)
	serving, err := ca.Server("server", []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	server := serve(t, ca, serving)

	user, err := ca.Client("system:kube-scheduler", "group-a")
	if err != nil {
		t.Fatal(err)
	}
	body, err := get(t, server, ca, user)
	if err != nil {
		t.Fatal(err)
	}
	if want := "system:kube-scheduler group-a"; body != want {
		t.Errorf("the server saw %q, want %q", body, want)
	}

	foreign, err := newAuthority(t).Client("system:kube-scheduler")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, server, ca, foreign); err == nil {
		t.Error("a certificate of another authority was accepted")
	}
}

func TestKeysAreForTheirOwnerAlone(t *testing.T) {
	dir := t.TempDir()
	if err := newAuthority(t).Write(dir, "ca"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir + "/ca.key")
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key may be read by others: %s", info.Mode())
	}
}

func newAuthority(t *testing.T) *Authority {
	t.Helper()
	ca, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func serve(t *testing.T, ca *Authority, serving Pair) string {
	t.Helper()
	cert, err := tls.X509KeyPair(serving.CertPEM, serving.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.CertPEM)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		group := ""
		if len(subject.Organization) > 0 {
			group = subject.Organization[0]
		}
		_, _ = io.WriteString(w, subject.CommonName+" "+group)
	}))
	server.Config.ErrorLog = nil
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func get(t *testing.T, server string, ca *Authority, user Pair) (string, error) {
	t.Helper()
	raw, err := Kubeconfig(server, ca.CertPEM, "u", user)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(server)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}
