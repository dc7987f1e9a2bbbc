// A minimal browser for a login: cookies, redirects, and the first form of a page, filled in like a password manager does.
const decode = (text) => text.replace(/&(?:amp|lt|gt|quot|#x27|#39);/g, (found) => ({ '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"' })[found] ?? "'")
const attribute = (tag, name) => {
  const found = new RegExp(`\\s${name}=("([^"]*)"|'([^']*)'|([^\\s>]+))`, 'i').exec(tag)
  return found ? decode(found[2] ?? found[3] ?? found[4]) : undefined
}

export class Browser {
  cookies = new Map()
  forms = 0

  // Opens a URL of `/authorize`, logs in where a page asks for it, and returns the URL or request that reaches the callback.
  async authorize(address, given) {
    return this.#walk(new URL(address), given.callback, given.user)
  }

  // Follows pages from a URL until a URL begins with the target.
  async leave(address, target, user = {}) {
    return this.#walk(new URL(address), target, user)
  }

  async #walk(address, target, user) {
    let request = { address, method: 'GET' }
    for (let step = 0; step < 15; step++) {
      if (request.address.href.startsWith(target)) {
        return request.method === 'GET' ? request.address : new Request(request.address, { method: 'POST', body: request.body, headers: { 'content-type': 'application/x-www-form-urlencoded' } })
      }
      const answer = await this.#send(request)
      const location = answer.headers.get('location')
      if (location !== null) {
        const keepsMethod = answer.status === 307 || answer.status === 308
        request = { ...(keepsMethod ? request : { method: 'GET' }), address: new URL(location, request.address) }
        continue
      }
      const page = await answer.text()
      request = this.#submitted(page, request.address, user)
      if (request === undefined) throw new Error(`${answer.status}: ${page.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ').slice(0, 600)}`)
    }
    throw new Error('too many steps')
  }

  async #send({ address, method, body }) {
    const headers = { cookie: [...this.cookies].map((pair) => pair.join('=')).join('; '), accept: 'text/html' }
    if (method === 'POST') Object.assign(headers, { 'content-type': 'application/x-www-form-urlencoded', origin: address.origin, referer: address.href })
    const answer = await fetch(address, { method, body, headers, redirect: 'manual' })
    for (const line of answer.headers.getSetCookie()) {
      const [name, value] = line.split(';')[0].split(/=(.*)/s)
      if (value === '' || /max-age=0/i.test(line)) this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return answer
  }

  #submitted(page, address, user) {
    const form = /<form[^>]*method=["']?post[\s\S]*?<\/form>/i.exec(page)?.[0]
    if (form === undefined) return undefined
    const fields = new URLSearchParams()
    for (const [tag] of form.matchAll(/<input\b[^>]*>/gi)) {
      const name = attribute(tag, 'name')
      if (name === undefined || /^(checkbox|radio|submit)$/i.test(attribute(tag, 'type') ?? '')) continue
      const purpose = attribute(tag, 'autocomplete') ?? ''
      if (attribute(tag, 'type') === 'password') fields.set(name, user.password)
      else if (/username|email/.test(purpose)) fields.set(name, user.email)
      else fields.append(name, attribute(tag, 'value') ?? '')
    }
    const button = /<button\b[^>]*\sname=[^>]*>/i.exec(form)?.[0]
    if (button !== undefined) fields.set(attribute(button, 'name'), attribute(button, 'value') ?? '')
    this.forms += 1
    const action = attribute(/<form[^>]*>/i.exec(form)[0], 'action') || address.href
    return { address: new URL(action, address), method: 'POST', body: fields.toString() }
  }
}
