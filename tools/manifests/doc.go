// Package manifests tests the files in deploy that start mayfly in containers and services: the Helm chart and the
// Kubernetes manifests, the Compose file and the systemd units. The tools' own parsers read them, and every
// command line in them starts the program that MAYFLY_BINARY names.
package manifests
