# kbctl as an image, for "kbctl run --table" in a management cluster (docs/installing.md#without-lambda).
FROM node:24-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
# tools/node24 is a package of this repository.
COPY tools/node24 tools/node24
RUN npm ci
COPY . .
RUN node tools/build-cli.mjs --whole /kbctl.mjs

FROM node:24-slim
ENV NODE_ENV=production
COPY --from=build /kbctl.mjs /kbctl.mjs
USER 1000:1000
ENTRYPOINT ["node", "/kbctl.mjs"]
CMD ["--help"]
