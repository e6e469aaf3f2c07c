{{/* Whether a pool speaks gRPC, so that the program listens for it: "true" or nothing. */}}
{{- define "autoscaler.speaksGrpc" -}}
{{- range .Values.pools -}}
{{- $server := default (dict) .server -}}
{{- if and (eq (default "" $server.kind) "triton") (ne (toString (default "port+1" $server.grpc_port)) "none") -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether KEDA scales a pool: "true" or nothing. */}}
{{- define "autoscaler.hasKeda" -}}
{{- range .Values.pools -}}{{- if eq .platform.kind "keda" -}}true{{- end -}}{{- end -}}
{{- end -}}

{{/* Whether the program changes or asks a cluster: "true" or nothing. */}}
{{- define "autoscaler.hasKubernetes" -}}
{{- range .Values.pools -}}{{- if eq .platform.kind "kubernetes" -}}true{{- end -}}{{- end -}}
{{- end -}}

{{/* The configuration file. As JSON, which is YAML: it keeps large numbers whole, which toYaml does not. */}}
{{- define "autoscaler.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "listen" ":8080" -}}
{{- $_ := set $config "admin" ":8082" -}}
{{- $_ := set $config "history" "/var/lib/autoscaler/autoscaler.db" -}}
{{- $_ := set $config "mode" .Values.mode -}}
{{- $_ := set $config "drain" (dict "grace" (printf "%ds" (int .Values.drain.graceSeconds)) "max" (printf "%ds" (int .Values.drain.maxSeconds))) -}}
{{- if include "autoscaler.speaksGrpc" . -}}
{{- $_ := set $config "grpc" (merge (dict "listen" ":8081") (default (dict) $config.grpc)) -}}
{{- end -}}
{{- if include "autoscaler.hasKeda" . -}}
{{- $_ := set $config "keda" (merge (dict "listen" ":8083") (default (dict) $config.keda)) -}}
{{- end -}}
{{- $_ := set $config "pools" .Values.pools -}}
{{- toPrettyJson $config -}}
{{- end -}}

{{/* Stops with a sentence at what cannot be meant. */}}
{{- define "autoscaler.check" -}}
{{- if not .Values.pools -}}
{{- fail "pools is empty: write one at least; the examples beside the chart and deploy/examples/reference.yaml show how" -}}
{{- end -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- if .Values.persistence.enabled -}}
{{- fail "replicas is above 1: each program needs a history of its own; set persistence.enabled to false, or replicas to 1" -}}
{{- end -}}
{{- if and (eq .Values.mode "act") (or (include "autoscaler.hasKubernetes" .) (include "autoscaler.hasKeda" .)) -}}
{{- fail "replicas is above 1: several programs would scale the same pools; set mode to recommend, or replicas to 1" -}}
{{- end -}}
{{- end -}}
{{- range $pool, $target := .Values.keda.scaledObjects -}}
{{- $section := get $.Values.pools $pool -}}
{{- if not $section -}}
{{- fail (printf "keda.scaledObjects.%s: there is no such pool" $pool) -}}
{{- end -}}
{{- if ne $section.platform.kind "keda" -}}
{{- fail (printf "keda.scaledObjects.%s: pools.%s.platform.kind is %s; set it to keda, or remove the object" $pool $pool $section.platform.kind) -}}
{{- end -}}
{{- end -}}
{{- end -}}
